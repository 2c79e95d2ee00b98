"""Cutting text on character borders, never through a marker (X-17: redact first, then cut)."""

import re

PREVIEW_BYTES = 8192
MARKER = re.compile(r"\[REDACTED:[a-z0-9_-]{1,40}\]")
LONGEST_MARKER = len("[REDACTED:]") + 40


def cut(text: str, limit_bytes: int = PREVIEW_BYTES) -> str:
    """Keep the longest head of `text` that fits in `limit_bytes` of UTF-8.

    A character is never split; a redaction marker that does not fit is dropped whole.
    """
    if (
        len(text) <= limit_bytes
        and len(text.encode("utf-8", "surrogatepass")) <= limit_bytes
    ):
        return text
    head = text[:limit_bytes].encode("utf-8", "surrogatepass")[:limit_bytes]
    kept = _decode_head(head)
    return kept[: _before_split_marker(text, len(kept))]


def _decode_head(head: bytes) -> str:
    for border in range(len(head), max(len(head) - 4, -1), -1):
        try:
            return head[:border].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            continue
    return ""


def _before_split_marker(text: str, border: int) -> int:
    for found in MARKER.finditer(
        text, max(0, border - LONGEST_MARKER), border + LONGEST_MARKER
    ):
        if found.start() < border < found.end():
            return found.start()
    return border

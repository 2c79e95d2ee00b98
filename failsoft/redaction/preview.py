"""Cutting text on character borders, never through a marker (redact first, then cut)."""

import re

PREVIEW_BYTES = 8192
MARKER = re.compile(r"\[REDACTED:[a-z0-9_-]{1,40}\]")
LONGEST_MARKER = len("[REDACTED:]") + 40


def cut(text: str, limit_bytes: int = PREVIEW_BYTES) -> str:
    """Keep the longest head of `text` that fits in `limit_bytes` of UTF-8.

    A character is never split; a redaction marker that does not fit is dropped whole.
    """
    head = text[: limit_bytes + 1].encode("utf-8", "surrogatepass")
    if len(head) <= limit_bytes:
        return text
    border = limit_bytes
    while head[border] & 0xC0 == 0x80:  # inside a character
        border -= 1
    kept = head[:border].decode("utf-8", "surrogatepass")
    return kept[: _before_split_marker(text, len(kept))]


def _before_split_marker(text: str, border: int) -> int:
    for found in MARKER.finditer(text, max(0, border - LONGEST_MARKER), border + LONGEST_MARKER):
        if found.start() < border < found.end():
            return found.start()
    return border

"""Truncation of redacted text at character boundaries, never inside a marker."""

import re

PREVIEW_BYTES = 8192
MARKER = re.compile(r"\[REDACTED:[a-z0-9_-]{1,40}\]")
LONGEST_MARKER = len("[REDACTED:]") + 40


def cut(text: str, limit_bytes: int = PREVIEW_BYTES) -> str:
    """Return the longest head of `text` that fits in `limit_bytes` of UTF-8.

    Characters are never split; a redaction marker that does not fit is dropped.
    """
    head = text[: limit_bytes + 1].encode("utf-8", "surrogatepass")
    if len(head) <= limit_bytes:
        return text
    border = limit_bytes
    while head[border] & 0xC0 == 0x80:  # inside a character
        border -= 1
    shown = head[:border].decode("utf-8", "surrogatepass")
    return shown[: _before_split_marker(text, len(shown))]


def _before_split_marker(text: str, border: int) -> int:
    for marker in MARKER.finditer(text, max(0, border - LONGEST_MARKER), border + LONGEST_MARKER):
        if marker.start() < border < marker.end():
            return marker.start()
    return border

"""Any name, null included, as one segment of an address and back.

Servers decode %2F before they look at segments, and browsers take `.` and `..` away, so
what is not plain is written as `~` with the two hexadecimal digits of each UTF-8 byte.
"""

import re

UNKNOWN = "-"
PLAIN = frozenset("._-:@+")
ESCAPED = re.compile(r"(?:~[0-9A-F]{2})+")


def write_segment(name: str | None) -> str:
    """Write a name as a segment; null is `-`, an empty name `~`."""
    if name is None:
        return UNKNOWN
    if name in {"", UNKNOWN, ".", ".."}:
        return _escape(name) or "~"
    return "".join(char if char.isalnum() or char in PLAIN else _escape(char) for char in name)


def read_segment(segment: str) -> str | None:
    """Read what `write_segment` wrote; raises ValueError for anything else."""
    if segment == UNKNOWN:
        return None
    if segment == "~":
        return ""
    name = ESCAPED.sub(_unescape, segment)
    if write_segment(name) != segment:
        raise ValueError("not a name as a segment")
    return name


def _escape(text: str) -> str:
    return "".join(f"~{byte:02X}" for byte in text.encode())


def _unescape(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("~", "")).decode(errors="replace")

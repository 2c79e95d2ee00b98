"""Cursors of lists by keyset: where a page ended, as a text that means nothing to others."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime

MOST_DIGITS = 18


class BadCursorError(ValueError):
    """the cursor is none that was given out"""

    def __init__(self) -> None:
        super().__init__(BadCursorError.__doc__)


def write_cursor(at: datetime, key: object) -> str:
    """Write the time and the key of a page's last row."""
    return _write(at.isoformat(), key)


def read_cursor(cursor: str) -> tuple[datetime, str]:
    """Read a time (aware) and a key; BadCursorError for any other text."""
    at, key = _read(cursor)
    try:
        when = datetime.fromisoformat(at)
    except ValueError as error:
        raise BadCursorError from error
    if when.tzinfo is None:
        raise BadCursorError
    return when, key


def write_count_cursor(count: int, key: object) -> str:
    """Write the count by which a list is ordered and the key of a page's last row."""
    return _write(str(count), key)


def read_count_cursor(cursor: str) -> tuple[int, str]:
    """Read a count and a key; BadCursorError for any other text."""
    count, key = _read(cursor)
    digits = count.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
        raise BadCursorError
    return int(count), key


def _write(place: str, key: object) -> str:
    return urlsafe_b64encode(f"{place}|{key}".encode()).decode().rstrip("=")


def _read(cursor: str) -> tuple[str, str]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        place, _, key = urlsafe_b64decode(padded.encode()).decode().partition("|")
    except ValueError as error:
        raise BadCursorError from error
    if not key:
        raise BadCursorError
    return place, key

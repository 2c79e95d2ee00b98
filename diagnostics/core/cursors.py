"""Cursors of lists by keyset: where a page ended, as a text that means nothing to others."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime


class BadCursorError(ValueError):
    """the cursor is none that was given out"""

    def __init__(self) -> None:
        super().__init__(BadCursorError.__doc__)


def write_cursor(at: datetime, key: object) -> str:
    """Write the time and the key of a page's last row."""
    text = f"{at.isoformat()}|{key}"
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[datetime, str]:
    """Read a time (aware) and a key; BadCursorError for any other text."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        at, _, key = urlsafe_b64decode(padded.encode()).decode().partition("|")
        when = datetime.fromisoformat(at)
    except ValueError as error:
        raise BadCursorError from error
    if when.tzinfo is None or not key:
        raise BadCursorError
    return when, key

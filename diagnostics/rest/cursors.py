"""Keyset pages, and their cursors: the end of a page as an opaque text."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from rest_framework.exceptions import ValidationError

Key = TypeVar("Key", int, UUID, str)
Row = TypeVar("Row", bound=Model)

MOST_DIGITS = 18
LARGEST_ID = 2**63 - 1
# Wider than any row's time, and narrow enough that adding a window to it cannot overflow.
YEARS = range(1971, 9000)


class BadCursorError(ValidationError):
    """the cursor is none that was given out"""

    def __init__(self) -> None:
        super().__init__({"cursor": BadCursorError.__doc__}, "bad_cursor")


class Keyset(NamedTuple):
    """The order of a list, newest first, by a time and a key: stable while rows keep coming in."""

    time: str
    key: str
    kind: type[Any]

    def after(self, cursor: str | None) -> Q:
        """Return the condition on the rows after a cursor; raises BadCursorError."""
        return self.behind(*read_cursor(cursor, self.kind)) if cursor else Q()

    def behind(self, at: datetime, key: object) -> Q:
        """Return the condition on the rows after a place in the list."""
        later = Q(**{f"{self.time}__lt": at}) | Q(**{self.time: at, f"{self.key}__lt": key})
        # A plain bound, by which partitions are left out.
        return later & Q(**{f"{self.time}__lte": at})

    def page(
        self, rows: QuerySet[Row], limit: int, cursor: str | None
    ) -> tuple[list[Row], str | None]:
        """Return one page and the cursor of the next; raises BadCursorError."""
        return self.cut(list(rows.filter(self.after(cursor))[: limit + 1]), limit)

    def cut(self, rows: list[Row], limit: int) -> tuple[list[Row], str | None]:
        """Return the first `limit` rows, and the cursor of the next page if there are more."""
        if len(rows) <= limit:
            return rows, None
        last = rows[limit - 1]
        return rows[:limit], write_cursor(getattr(last, self.time), getattr(last, self.key))


EVENT_ORDER = Keyset("occurred_at", "event_id", UUID)
# Sorts before every other: a cursor with it is at the start of its instant.
NO_ID = UUID(int=0)


def write_cursor(at: datetime, key: object) -> str:
    return _write(at.isoformat(), key)


def read_cursor(cursor: str, kind: type[Key]) -> tuple[datetime, Key]:
    """Return the time (UTC) and the key of a cursor; raises BadCursorError."""
    at, key = _read(cursor)
    try:
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None:
            raise BadCursorError
        # PostgreSQL supports fewer offsets than Python.
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadCursorError from error
    if moment.year not in YEARS:
        raise BadCursorError
    return moment, read_key(key, kind)


def write_count_cursor(count: int, key: object) -> str:
    return _write(str(count), key)


def read_count_cursor(cursor: str) -> tuple[int, int]:
    """Return a count and a key; BadCursorError for any other text."""
    count, key = _read(cursor)
    digits = count.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
        raise BadCursorError
    return int(count), read_key(key, int)


def read_key(text: str, kind: type[Key]) -> Key:
    """Return the key of a row; BadCursorError for what no column can hold."""
    try:
        if kind is int and not (text.isascii() and text.isdigit() and int(text) <= LARGEST_ID):
            raise BadCursorError
        if "\0" in text:
            raise BadCursorError
        return kind(text)
    except ValueError as error:
        raise BadCursorError from error


def _write(place: str, key: object) -> str:
    return urlsafe_b64encode(f"{place}|{key}".encode()).decode().rstrip("=")


def _read(cursor: str) -> tuple[str, str]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        place, _, key = urlsafe_b64decode(padded.encode()).decode().partition("|")
    except ValueError as error:
        raise BadCursorError from error
    return place, key

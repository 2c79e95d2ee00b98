"""Dates as people write them; what is none is no date, never an error (S4-16)."""

import re
from datetime import UTC, date, datetime, time, timedelta

WEEKDAYS = (
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
)
NAMED = {"today": 0, "tonight": 0, "tomorrow": 1, "day after tomorrow": 2}
UNITS = {"day": 1, "week": 7}
_IN_SOME = re.compile(r"in (an?|[0-9]{1,3}) (day|week)s?")
_WEEKDAY = re.compile(r"(?:(on|by|this|next) )?([a-z]+)")
_LAST_YEAR = 2200


def resolve_date(text: str | None, now: datetime) -> datetime | None:
    """The moment a text means, seen from `now`; a day without a time begins at 00:00 UTC."""
    if text is None:
        return None
    written = " ".join(text.lower().split())
    found = _read_iso(text.strip()) or _read_words(written, now.date())
    return found if found is not None and found.year <= _LAST_YEAR else None


def _read_iso(text: str) -> datetime | None:
    try:
        read = datetime.fromisoformat(text)
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _read_words(written: str, today: date) -> datetime | None:
    if written in NAMED:
        return _midnight(today + timedelta(days=NAMED[written]))
    some = _IN_SOME.fullmatch(written)
    if some:
        count = 1 if some[1] in ("a", "an") else int(some[1])
        return _midnight(today + timedelta(days=count * UNITS[some[2]]))
    if written == "next week":
        return _midnight(today + timedelta(days=7))
    weekday = _WEEKDAY.fullmatch(written)
    if weekday and weekday[2] in WEEKDAYS:
        ahead = (WEEKDAYS.index(weekday[2]) - today.weekday() - 1) % 7 + 1
        return _midnight(today + timedelta(days=ahead))
    return None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)

"""The toolset `entries`: notes, todos, habits and similar items."""

import re
from datetime import UTC, date, datetime, time, timedelta

from failsoft.actions.toolsets import (
    FALLBACK,
    IDENTIFIER,
    LEFT_OUT,
    ActionTool,
    EntryField,
    RefusedValue,
    Taken,
    Toolset,
    choice,
    clamped_integer,
    loose_text,
    strict_text,
)

CATEGORIES = ("todo", "note", "reminder", "idea", "list", "habit", "question", "thought")
CADENCES = ("daily", "weekdays", "weekly", "monthly")
STATUSES = ("active", "snoozed", "completed", "archived")
# The fallback for unknown categories.
_NOTE = Taken("note", (FALLBACK,))
_CADENCE = choice(CADENCES, LEFT_OUT)
_PRIORITY = clamped_integer(1, 5, "1 is the most important, 5 the least")
_DATE = loose_text("a date such as 2026-12-24, or: today, tomorrow, friday, in 3 days")
# A wrong status is worse than a failed call.
_STATUS = choice(STATUSES, RefusedValue("choice", f"expected one of {', '.join(STATUSES)}"))
_ID = EntryField("id", IDENTIFIER, required=True)
_REASON = EntryField("reason", strict_text())
CREATE = ActionTool(
    name="create_entries",
    type="create",
    past="created",
    list_key="entries",
    description="Create entries, one for each thing that was said.",
    fields=(
        EntryField("content", strict_text(required=True), required=True),
        EntryField("category", choice(CATEGORIES, _NOTE, absent=_NOTE), True),
        EntryField("summary", strict_text()),
        EntryField("source_text", strict_text()),
        EntryField("priority", _PRIORITY),
        EntryField("due_date", _DATE),
        EntryField("cadence", _CADENCE),
    ),
)
UPDATE = ActionTool(
    name="update_entries",
    type="update",
    past="updated",
    list_key="updates",
    description="Change fields of entries that exist; what is left out stays.",
    fields=(
        _ID,
        EntryField("content", strict_text(), under="fields"),
        EntryField("summary", strict_text(), under="fields"),
        EntryField("category", choice(CATEGORIES, _NOTE), under="fields"),
        EntryField("priority", _PRIORITY, under="fields"),
        EntryField("due_date", _DATE, under="fields"),
        EntryField("cadence", _CADENCE, under="fields"),
        EntryField("status", _STATUS, under="fields"),
        EntryField("snooze_until", _DATE, under="fields"),
        _REASON,
    ),
)
COMPLETE = ActionTool(
    name="complete_entries",
    type="complete",
    past="completed",
    list_key="entries",
    description="Mark entries as done.",
    fields=(_ID, _REASON),
)
ARCHIVE = ActionTool(
    name="archive_entries",
    type="archive",
    past="archived",
    list_key="entries",
    description="Put entries away that are not wanted any more.",
    fields=(_ID, _REASON),
)
ENTRIES = Toolset("entries", (CREATE, UPDATE, COMPLETE, ARCHIVE))
TOOLSETS: dict[str, Toolset] = {ENTRIES.name: ENTRIES}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NAMED = {"today": 0, "tonight": 0, "tomorrow": 1, "day after tomorrow": 2}
UNITS = {"day": 1, "week": 7}
_IN_SOME = re.compile(r"in (an?|[0-9]{1,3}) (day|week)s?")
_WEEKDAY = re.compile(r"(?:(on|by|this|next) )?([a-z]+)")
_LAST_YEAR = 2200


def resolve_date(text: str | None, now: datetime) -> datetime | None:
    """Return the moment that a text means relative to `now`; a day means its 00:00 UTC."""
    if text is None:
        return None
    words = " ".join(text.lower().split())
    moment = _read_iso(text.strip()) or _read_words(words, now.date())
    return moment if moment is not None and moment.year <= _LAST_YEAR else None


def _read_iso(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _read_words(words: str, today: date) -> datetime | None:
    if words in NAMED:
        return _midnight(today + timedelta(days=NAMED[words]))
    match = _IN_SOME.fullmatch(words)
    if match:
        count = 1 if match[1] in ("a", "an") else int(match[1])
        return _midnight(today + timedelta(days=count * UNITS[match[2]]))
    if words == "next week":
        return _midnight(today + timedelta(days=7))
    weekday = _WEEKDAY.fullmatch(words)
    if weekday and weekday[2] in WEEKDAYS:
        ahead = (WEEKDAYS.index(weekday[2]) - today.weekday() - 1) % 7 + 1
        return _midnight(today + timedelta(days=ahead))
    return None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)

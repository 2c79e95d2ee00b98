"""The toolset `entries`: notes, todos, habits and the like (s4, X-19)."""

from agents.core.actions.policies import (
    ClampedInteger,
    FallbackChoice,
    Identifier,
    LooseText,
    OptionalChoice,
    StrictChoice,
    StrictText,
)
from agents.core.actions.toolsets import ActionTool, Field, Toolset

CATEGORIES = (
    "todo",
    "note",
    "reminder",
    "idea",
    "list",
    "habit",
    "question",
    "thought",
)
CADENCES = ("daily", "weekdays", "weekly", "monthly")
STATUSES = ("active", "snoozed", "completed", "archived")
# The least assuming category, for whatever a model makes up.
NOTE = "note"

_CADENCE = OptionalChoice(CADENCES)
_PRIORITY = ClampedInteger(1, 5, "1 is the most important, 5 the least")
_DATE = LooseText("a date such as 2026-12-24, or: today, tomorrow, friday, in 3 days")
_ID = Field("id", Identifier(), required=True)
_REASON = Field("reason", StrictText())

CREATE = ActionTool(
    name="create_entries",
    type="create",
    past="created",
    list_key="entries",
    description="Create entries, one for each thing that was said.",
    fields=(
        Field("content", StrictText(required=True), required=True),
        Field("category", FallbackChoice(CATEGORIES, NOTE, when_absent=NOTE), True),
        Field("summary", StrictText()),
        Field("source_text", StrictText()),
        Field("priority", _PRIORITY),
        Field("due_date", _DATE),
        Field("cadence", _CADENCE),
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
        Field("content", StrictText(), under="fields"),
        Field("summary", StrictText(), under="fields"),
        Field("category", FallbackChoice(CATEGORIES, NOTE), under="fields"),
        Field("priority", _PRIORITY, under="fields"),
        Field("due_date", _DATE, under="fields"),
        Field("cadence", _CADENCE, under="fields"),
        Field("status", StrictChoice(STATUSES), under="fields"),
        Field("snooze_until", _DATE, under="fields"),
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

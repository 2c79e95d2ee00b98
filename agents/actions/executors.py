"""What carries out the actions of a toolset: the seam between decoding and rows."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from agents.actions.models import Entry
from diagnostics.redaction.redactor import redact
from failsoft.actions.entries import resolve_date
from failsoft.actions.results import Action
from failsoft.json_values import clean_text


class ActionError(Exception):
    """an action cannot be applied; the message is ours and is shown to administrators"""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done: `shown` is redacted and kept, `undo` lies in the working store."""

    shown: dict[str, Any]
    undo: dict[str, Any]


class Executor(Protocol):
    """Applies actions of one toolset, each inside a savepoint of its own."""

    def apply(self, project_id: int, action: Action, now: datetime) -> Applied:
        """Apply one action; ActionError when it cannot be."""
        ...

    def undo(self, project_id: int, record: Mapping[str, Any]) -> bool:
        """Take one action back; False when what it did has been changed since."""
        ...

    def describe(self, project_id: int) -> list[str]:
        """Tell a planner, a line each, what there is to act upon."""
        ...


SHOWN_BYTES = 256 * 1024
SHORT_ID_CHARACTERS = 8
MAX_TOLD = 50
MAX_TOLD_CHARACTERS = 160
_HEXADECIMAL = re.compile(r"[0-9a-f]{1,32}")


class EntriesExecutor:
    """Creates and changes rows of `Entry`."""

    def apply(self, project_id: int, action: Action, now: datetime) -> Applied:
        """Apply one action; ActionError when its entry is not there or not one."""
        if action.type == "create":
            return _create(project_id, action, now)
        entry = _resolve(project_id, action.fields["id"])
        match action.type:
            case "update":
                return _change(entry, action, _changes(action.fields, now))
            case "complete":
                return _change(entry, action, {"status": Entry.Status.COMPLETED})
            case _:
                return _change(entry, action, {"status": Entry.Status.ARCHIVED})

    def undo(self, project_id: int, record: Mapping[str, Any]) -> bool:
        """Take one action back; False when the entry has changed since, or is gone."""
        entry = Entry.objects.of(project_id).filter(pk=record["id"], revision=record["revision"])
        if record["before"] is None:
            return entry.delete()[0] == 1
        return entry.update(**record["before"], revision=record["revision"] - 1) == 1

    def describe(self, project_id: int) -> list[str]:
        """Tell a planner what there is: short ids, the most important first."""
        entries = Entry.objects.of(project_id).open().by_importance()[:MAX_TOLD]
        return [_tell(entry) for entry in entries]


def _create(project_id: int, action: Action, now: datetime) -> Applied:
    entry = Entry.objects.create(
        id=secrets.token_hex(16),
        project_id=project_id,
        **{
            column: value
            for column, value in _changes(action.fields, now).items()
            if value is not None
        },
    )
    undo = {"id": entry.pk, "revision": entry.revision, "before": None}
    return Applied(_shown(action, entry.pk), undo)


def _change(entry: Entry, action: Action, changes: Mapping[str, Any]) -> Applied:
    before = {column: getattr(entry, column) for column in changes}
    revision = entry.revision + 1
    Entry.objects.filter(pk=entry.pk).update(**changes, revision=revision)
    undo = {
        "id": entry.pk,
        "revision": revision,
        "before": {
            column: value.isoformat() if isinstance(value, datetime) else value
            for column, value in before.items()
        },
    }
    return Applied(_shown(action, entry.pk), undo)


def _changes(fields: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The columns that an action sets; null says nothing about a field."""
    plain = ("category", "priority", "cadence", "status")
    texts = ("content", "summary", "source_text")
    changes = {name: fields[name] for name in plain if fields.get(name) is not None}
    changes |= {name: _redacted(fields[name]) for name in texts if fields.get(name) is not None}
    if fields.get("due_date") is not None:
        changes["due_text"] = redact(clean_text(fields["due_date"]), 200)
        changes["due_at"] = resolve_date(fields["due_date"], now)
    if fields.get("snooze_until") is not None:
        changes["snooze_until"] = resolve_date(fields["snooze_until"], now)
    return changes


def _resolve(project_id: int, written: str) -> Entry:
    """The one entry whose id begins so."""
    prefix = written.replace("-", "").lower()
    found: list[Entry] = []
    if _HEXADECIMAL.fullmatch(prefix):
        entries = Entry.objects.of(project_id).beginning_with(prefix)
        found = list(entries.select_for_update().order_by("pk")[:2])
    shown = _redacted(written)
    if not found:
        raise ActionError("not_found", f"entry {shown} not found")
    if len(found) > 1:
        raise ActionError("ambiguous_id", f"entry {shown} is more than one")
    return found[0]


def _redacted(text: str) -> str:
    return redact(clean_text(text), SHOWN_BYTES)


def _shown(action: Action, entry_id: str) -> dict[str, Any]:
    """The action as it is kept: flat, redacted, with the whole id of its entry."""
    flat = {
        name: _redacted(value) if isinstance(value, str) else value
        for name, value in action.flat().items()
    }
    return {**flat, "entry_id": entry_id}


def _tell(entry: Entry) -> str:
    priority = f" P{entry.priority}" if entry.priority else ""
    text = " ".join((entry.summary or entry.content).split())[:MAX_TOLD_CHARACTERS]
    return f"{entry.pk[:SHORT_ID_CHARACTERS]} {entry.category}{priority}: {text}"

"""Executors, which apply the actions of a toolset to rows."""

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
    """An applied action: `shown` is redacted and stored, `undo` goes to the working store."""

    shown: dict[str, Any]
    undo: dict[str, Any]


class Executor(Protocol):
    """Applies actions of one toolset, each inside its own savepoint."""

    def apply(self, project_id: int, action: Action, now: datetime) -> Applied:
        """Apply one action; ActionError if it cannot be applied."""
        ...

    def undo(self, project_id: int, record: Mapping[str, Any]) -> bool:
        """Undo one action; False if its result has been changed since."""
        ...

    def describe(self, project_id: int) -> list[str]:
        """Return a line for each thing that a planner may change."""
        ...


SHOWN_BYTES = 256 * 1024
SHORT_ID_CHARACTERS = 8
MAX_DESCRIBED = 50
MAX_DESCRIBED_CHARACTERS = 160
_HEXADECIMAL = re.compile(r"[0-9a-f]{1,32}")


class EntriesExecutor:
    """Creates and changes rows of `Entry`."""

    def apply(self, project_id: int, action: Action, now: datetime) -> Applied:
        """Apply one action; ActionError if its entry is missing or ambiguous."""
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
        """Undo one action; False if the entry has changed since, or is gone."""
        entry = Entry.objects.of(project_id).filter(pk=record["id"], revision=record["revision"])
        if record["before"] is None:
            return entry.delete()[0] == 1
        return entry.update(**record["before"], revision=record["revision"] - 1) == 1

    def describe(self, project_id: int) -> list[str]:
        """Return a line for each open entry with its short id, the most important first."""
        entries = Entry.objects.of(project_id).open().by_importance()[:MAX_DESCRIBED]
        return [_describe_entry(entry) for entry in entries]


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
    return Applied(_stored_action(action, entry.pk), undo)


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
    return Applied(_stored_action(action, entry.pk), undo)


def _changes(fields: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the columns that an action sets; null leaves a field unchanged."""
    plain = ("category", "priority", "cadence", "status")
    texts = ("content", "summary", "source_text")
    changes = {name: fields[name] for name in plain if fields.get(name) is not None}
    changes |= {name: _redact_text(fields[name]) for name in texts if fields.get(name) is not None}
    if fields.get("due_date") is not None:
        changes["due_text"] = redact(clean_text(fields["due_date"]), 200)
        changes["due_at"] = resolve_date(fields["due_date"], now)
    if fields.get("snooze_until") is not None:
        changes["snooze_until"] = resolve_date(fields["snooze_until"], now)
    return changes


def _resolve(project_id: int, written: str) -> Entry:
    """Return the only entry whose id has this prefix."""
    prefix = written.replace("-", "").lower()
    matches: list[Entry] = []
    if _HEXADECIMAL.fullmatch(prefix):
        entries = Entry.objects.of(project_id).filter(id__startswith=prefix)
        matches = list(entries.select_for_update().order_by("pk")[:2])
    redacted = _redact_text(written)
    if not matches:
        raise ActionError("not_found", f"entry {redacted} not found")
    if len(matches) > 1:
        raise ActionError("ambiguous_id", f"entry {redacted} is more than one")
    return matches[0]


def _redact_text(text: str) -> str:
    return redact(clean_text(text), SHOWN_BYTES)


def _stored_action(action: Action, entry_id: str) -> dict[str, Any]:
    """Return the action as it is stored: flat, redacted, with the full id of its entry."""
    flat = {
        name: _redact_text(value) if isinstance(value, str) else value
        for name, value in action.flat().items()
    }
    return {**flat, "entry_id": entry_id}


def _describe_entry(entry: Entry) -> str:
    priority = f" P{entry.priority}" if entry.priority else ""
    text = " ".join((entry.summary or entry.content).split())[:MAX_DESCRIBED_CHARACTERS]
    return f"{entry.pk[:SHORT_ID_CHARACTERS]} {entry.category}{priority}: {text}"

"""Apply the actions of a goal, and undo them.

1. Each action is applied in its own savepoint: one that fails does not affect the others.
2. Results, failures by layer, and the summary are one row, stored in the
   caller's transaction, so that actions are applied once, even if a message is redelivered.
3. An undo reverts what was applied, the last first, except what was changed since.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db import DataError, IntegrityError, transaction

from agents.actions.models import Entry
from agents.goals.models import ActionBatch, Goal
from agents.goals.requests import StateConflictError
from diagnostics import clock
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact
from failsoft.actions.entries import TOOLSETS, resolve_date
from failsoft.actions.results import (
    ACTIONS_FAILED,
    Action,
    ExecutionFailure,
    ParseFailure,
    ParseResult,
    summarise,
    without_model_text,
)
from failsoft.json_values import clean_text
from plans.runs import working_store


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


SHOWN_BYTES = 256 * 1024
SHORT_ID_CHARACTERS = 8
MAX_DESCRIBED = 50
MAX_DESCRIBED_CHARACTERS = 160
_HEXADECIMAL = re.compile(r"[0-9a-f]{1,32}")


def _apply(project_id: int, action: Action, now: datetime) -> Applied:
    """Apply one action; ActionError if its entry is missing or ambiguous."""
    if action.type == "create":
        columns = _changes(action.fields, now).items()
        given = {column: value for column, value in columns if value is not None}
        created = Entry.objects.create(id=secrets.token_hex(16), project_id=project_id, **given)
        undo = {"id": created.pk, "revision": created.revision, "before": None}
        return Applied(_stored_action(action, created.pk), undo)
    entry = _resolve(project_id, action.fields["id"])
    match action.type:
        case "update":
            return _change(entry, action, _changes(action.fields, now))
        case "complete":
            return _change(entry, action, {"status": Entry.Status.COMPLETED})
        case _:
            return _change(entry, action, {"status": Entry.Status.ARCHIVED})


def _undo(project_id: int, record: Mapping[str, Any]) -> bool:
    """Undo one action; False if its entry has changed since, or is gone."""
    entry = Entry.objects.of(project_id).filter(pk=record["id"], revision=record["revision"])
    if record["before"] is None:
        return entry.delete()[0] == 1
    return entry.update(**record["before"], revision=record["revision"] - 1) == 1


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
    flat = {
        name: _redact_text(value) if isinstance(value, str) else value
        for name, value in action.flat().items()
    }
    return {**flat, "entry_id": entry_id}


def _describe_entry(entry: Entry) -> str:
    priority = f" P{entry.priority}" if entry.priority else ""
    text = " ".join((entry.summary or entry.content).split())[:MAX_DESCRIBED_CHARACTERS]
    return f"{entry.pk[:SHORT_ID_CHARACTERS]} {entry.category}{priority}: {text}"


logger = structlog.get_logger(__name__)

RAW_BYTES = 4 * 1024
MAX_FAILURES_KEPT = 100
UNDO = "undo"


class NothingToUndoError(StateConflictError):
    """this goal has applied no actions"""


class AlreadyUndoneError(StateConflictError):
    """the actions of this goal were undone before"""


class UndoExpiredError(StateConflictError):
    """what an undo needs is not kept any more"""


def apply_actions(goal: Goal, result: ParseResult) -> ActionBatch:
    """Apply the decoded actions once, inside the caller's transaction."""
    stored = batch_of(goal)
    if stored is not None:
        return stored
    toolset = TOOLSETS[goal.toolset or ""]
    applied, failures = _apply_each(goal, result.actions, clock.now())
    working_store.put(goal, UNDO, [item.undo for item in applied])
    failed = result.failed_entries + len(failures)
    return ActionBatch.objects.create(
        project_id=goal.project_id,
        goal=goal,
        toolset=toolset.name,
        applied=[item.shown for item in applied],
        parse_failures=[_describe_unparsed(item) for item in result.failures[:MAX_FAILURES_KEPT]],
        execution_failures=[_describe_execution(item) for item in failures[:MAX_FAILURES_KEPT]],
        parse_failed=result.failed_entries,
        execution_failed=len(failures),
        summary=summarise([item.shown["type"] for item in applied], failed, toolset),
    )


def evaluate_actions(batch: ActionBatch) -> dict[str, Any]:
    """Return the evaluation of a batch: complete if anything was applied."""
    return {
        "complete": bool(batch.applied),
        "reason": None if batch.applied else ACTIONS_FAILED,
        "applied": len(batch.applied),
        "parse_failed": batch.parse_failed,
        "execution_failed": batch.execution_failed,
    }


def undo_actions(goal: Goal) -> ActionBatch:
    """Undo what was applied.

    Raises NothingToUndoError, AlreadyUndoneError, UndoExpiredError.
    """
    batch = batch_of(goal)
    if batch is None or not batch.applied:
        raise NothingToUndoError(NothingToUndoError.__doc__)
    with transaction.atomic():
        claimed = ActionBatch.objects.filter(pk=batch.pk, undone_at__isnull=True)
        if claimed.update(undone_at=DatabaseNow()) != 1:
            raise AlreadyUndoneError(AlreadyUndoneError.__doc__)
        try:
            records: list[dict[str, Any]] = working_store.get(goal, UNDO)
        except working_store.WorkingItemMissingError as error:
            raise UndoExpiredError(UndoExpiredError.__doc__) from error
        kept = [record["id"] for record in reversed(records) if not _undo(goal.project_id, record)]
        ActionBatch.objects.filter(pk=batch.pk).update(kept=kept)
    batch.refresh_from_db()
    return batch


def batch_of(goal: Goal) -> ActionBatch | None:
    return ActionBatch.objects.filter(goal_id=goal.pk).first()


def describe_things(goal: Goal) -> list[str]:
    """Return a line for each entry that the planner of a goal of mode actions may change."""
    if goal.toolset is None:
        return []
    entries = Entry.objects.of(goal.project_id).open().by_importance()[:MAX_DESCRIBED]
    return [_describe_entry(entry) for entry in entries]


def _apply_each(
    goal: Goal, actions: Sequence[Action], now: datetime
) -> tuple[list[Applied], list[ExecutionFailure]]:
    applied: list[Applied] = []
    failures: list[ExecutionFailure] = []
    for action in actions:
        try:
            with transaction.atomic():
                applied.append(_apply(goal.project_id, action, now))
        except ActionError as error:
            failures.append(ExecutionFailure(action, error.code, error.message))
        except (DataError, IntegrityError) as error:
            logger.warning("action_not_stored", error=type(error).__name__)
            failures.append(ExecutionFailure(action, "not_stored", "could not be stored"))
    return applied, failures


def _describe_unparsed(failure: ParseFailure) -> dict[str, Any]:
    """Return a parse failure as it is stored: the text is redacted whole, then cut."""
    raw = redact(clean_text(failure.raw_arguments), RAW_BYTES)
    return {**_redact_texts(without_model_text(failure)), "raw_arguments": raw}


def _describe_execution(failure: ExecutionFailure) -> dict[str, Any]:
    return _redact_texts(
        {
            "tool_name": failure.action.tool_name,
            "tool_call_id": failure.action.tool_call_id,
            "path": failure.action.path,
            "type": failure.action.type,
            "code": failure.code,
            "message": failure.message,
        }
    )


def _redact_texts(record: dict[str, Any]) -> dict[str, Any]:
    return {
        name: redact(clean_text(value)) if isinstance(value, str) else value
        for name, value in record.items()
    }

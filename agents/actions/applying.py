"""Apply the actions of a goal, and undo them.

1. Each action is applied in its own savepoint: one that fails does not affect the others.
2. Results, failures by layer, and the summary are one row, stored in the
   caller's transaction, so that actions are applied once, even if a message is redelivered.
3. An undo reverts what was applied, the last first, except what was changed since.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import structlog
from django.db import DataError, IntegrityError, transaction

from agents.actions.executors import ActionError, Applied, EntriesExecutor, Executor
from agents.goals.models import ActionBatch, Goal
from agents.goals.requests import StateConflictError
from diagnostics import clock
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact
from failsoft.actions.entries import TOOLSETS
from failsoft.actions.results import (
    ACTIONS_FAILED,
    Action,
    ExecutionFailure,
    ParseFailure,
    ParseResult,
    summarise,
)
from failsoft.actions.streaming import without_model_text
from failsoft.json_values import clean_text
from plans.runs import working_store

logger = structlog.get_logger(__name__)

EXECUTORS: dict[str, Executor] = {"entries": EntriesExecutor()}
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
        executor = EXECUTORS[batch.toolset]
        kept = [
            record["id"]
            for record in reversed(records)
            if not executor.undo(goal.project_id, record)
        ]
        ActionBatch.objects.filter(pk=batch.pk).update(kept=kept)
    batch.refresh_from_db()
    return batch


def batch_of(goal: Goal) -> ActionBatch | None:
    """Return the results of the goal's actions; None before they were applied."""
    return ActionBatch.objects.filter(goal_id=goal.pk).first()


def describe_things(goal: Goal) -> list[str]:
    """Return a line for each entry that the planner of a goal of mode actions may change."""
    if goal.toolset is None:
        return []
    return EXECUTORS[goal.toolset].describe(goal.project_id)


def _apply_each(
    goal: Goal, actions: Sequence[Action], now: datetime
) -> tuple[list[Applied], list[ExecutionFailure]]:
    executor = EXECUTORS[goal.toolset or ""]
    applied: list[Applied] = []
    failures: list[ExecutionFailure] = []
    for action in actions:
        try:
            with transaction.atomic():
                applied.append(executor.apply(goal.project_id, action, now))
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

"""Events of completion checks, made from their rows: node `completion_check` (X-16).

A decision is an answer that could be read; an undecidable check is one that could not.
A tool or a command has no provider and no model.
"""

from datetime import datetime
from typing import Any

from agents.models import Goal
from agents.recording import AFTER, model_name, provider_name
from diagnostics import clock
from diagnostics.core.events import Event, EventKind, ParseErrorType, event_name
from diagnostics.core.identifiers import event_id
from diagnostics.ingestion.recording import record
from plans.core.completion import Cause
from plans.models import CompletionCheck

CHECK_NODE = "completion_check"
SCHEMA = "CompletionDecision"
SCHEMA_VERSION = "1"
PARSE_FAILED = f"{CHECK_NODE}_parse_failed"
PROVIDER_FAILED = "provider_failed"
_ERROR_TYPES = {
    Cause.MISSING_DECISION: ParseErrorType.NOT_JSON,
    Cause.EMPTY_FILE: ParseErrorType.EMPTY_OUTPUT,
    Cause.UNREADABLE_FILE: ParseErrorType.NOT_JSON,
    Cause.TOO_LARGE: ParseErrorType.NOT_JSON,
    Cause.UNKNOWN_TEXT: ParseErrorType.NOT_JSON,
    Cause.INVALID_JSON: ParseErrorType.NOT_JSON,
    Cause.TRUNCATED: ParseErrorType.TRUNCATED,
    Cause.OUTPUT_CUT: ParseErrorType.TRUNCATED,
    Cause.MULTIPLE_DOCUMENTS: ParseErrorType.MULTIPLE_OBJECTS,
    Cause.DUPLICATE_KEY: ParseErrorType.DUPLICATE_KEY,
}


def error_type_of(cause: str | None) -> ParseErrorType:
    """Which parse failure an undecidable check is (X-15)."""
    found = {key.value: value for key, value in _ERROR_TYPES.items()}
    return found.get(cause or "", ParseErrorType.SCHEMA_INVALID)


def record_check(goal: Goal, row: CompletionCheck) -> None:
    """Store the event of a check that has been settled."""
    if row.ended_at is None:
        raise ValueError("a check has no event before it has ended")
    if row.state == CompletionCheck.State.FAILED:
        if row.kind == CompletionCheck.Kind.MODEL:
            _record(goal, row, EventKind.PROVIDER_ERROR, row.ended_at)
        return
    if row.decision != CompletionCheck.Decision.UNDECIDABLE:
        _record(goal, row, EventKind.SUCCEEDED, row.ended_at)
        return
    cause = (row.reason or "").partition(":")[0]
    _record(
        goal,
        row,
        EventKind.PARSE_INVALID,
        row.ended_at,
        parse_error_type=error_type_of(cause),
        validation_errors=[{"path": "", "code": cause, "message": row.reason or cause}],
        raw_output_preview=row.preview or None,
    )


def record_check_failed(goal: Goal, row: CompletionCheck, evaluation: dict[str, Any]) -> None:
    """Store the terminal event of a loop that its checks ended: undecided, or no answer."""
    reason = evaluation.get("reason")
    is_undecided = reason == "undecidable_limit_exceeded"
    is_silent = reason == "checker_failed" and row.kind == CompletionCheck.Kind.MODEL
    if not (is_undecided or is_silent):
        return
    at = (row.ended_at or clock.now()) + AFTER
    attempts = max(row.undecidable_in_a_row, 1)
    why = PARSE_FAILED if is_undecided else PROVIDER_FAILED
    fields = {"attempts": attempts, "reason": why, "status": "failed"}
    _record(goal, row, EventKind.DEGRADED, at, **fields)


def _record(
    goal: Goal, row: CompletionCheck, kind: EventKind, at: datetime, **fields: object
) -> None:
    name = event_name(CHECK_NODE, kind)
    is_terminal = kind is EventKind.DEGRADED
    number = None if is_terminal else row.number
    by_model = row.kind == CompletionCheck.Kind.MODEL
    identity = (goal.project_id, goal.correlation_id, CHECK_NODE, row.cycle, number)
    attributes = {
        "check_kind": row.kind,
        "decision_source": row.source,
        "iteration": row.iteration,
    }
    if row.decision is not None:
        attributes["decision"] = row.decision
    if row.check_id_match is not None:
        attributes["check_id_match"] = row.check_id_match
    event = Event.model_validate(
        {
            "event_id": event_id(at, *identity, name),
            "name": name,
            "occurred_at": at,
            "correlation_id": goal.correlation_id,
            "node": CHECK_NODE,
            "cycle": row.cycle,
            "provider": provider_name(goal) if by_model else None,
            "model": model_name(goal) if by_model else None,
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "environment": goal.environment,
            "source": goal.source,
            "attributes": attributes,
            **({} if is_terminal else {"attempt": number}),
            **fields,
        }
    )
    record(goal.project_id, [event])

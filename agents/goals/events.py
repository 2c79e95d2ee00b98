"""Events of goals and completion checks, made from rows: the same row, the same event."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from agents.goals.models import Attempt, Goal
from agents.goals.state import NODES, SCHEMA_OF_NODE, AttemptState
from agents.llm.provider import ANSWERERS
from diagnostics import clock
from diagnostics.ingest.recording import record
from failsoft.actions.toolsets import ACTIONS_VERSION
from failsoft.completion import UndecidedCause
from failsoft.events import AFTER, NEAREST_TOOL, EventKind, ParseErrorType, PostedEvent, event_name
from failsoft.identifiers import event_id
from failsoft.plans.contract import CONTRACT_VERSION
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.proposals import SCHEMA_VERSION
from plans.models.check import CompletionCheck

SCHEMA_VERSIONS = {
    PlannerSchema.NEXT_STEP: SCHEMA_VERSION,
    PlannerSchema.PLAN: CONTRACT_VERSION,
    PlannerSchema.ACTIONS: ACTIONS_VERSION,
}
EVENT_OF_STATE = {
    Attempt.State.VALID: EventKind.SUCCEEDED,
    Attempt.State.INVALID: EventKind.PARSE_INVALID,
    Attempt.State.CALL_FAILED: EventKind.PROVIDER_ERROR,
}
STATE_OF: Mapping[str, AttemptState] = {kind: state for state, kind in EVENT_OF_STATE.items()}
SAME_IN_EVENT = (
    *("repairs", "coerced", "finish_reason", "output_mode", "max_output_tokens"),
    *("temperature", "latency_ms", "input_tokens", "output_tokens", "reasoning_tokens"),
    *ANSWERERS,
)


def schema_of(goal: Goal) -> PlannerSchema:
    return SCHEMA_OF_NODE[goal.mode]


def record_attempt(
    goal: Goal, attempt: Attempt, unknown_tools: Sequence[tuple[str, str | None]]
) -> None:
    """Store the event of an attempt that has ended, and one for each unregistered tool.

    `unknown_tools` has each name with the nearest registered one.
    """
    if attempt.occurred_at is None:
        raise ValueError("an attempt has no event before it has ended")
    kind = EVENT_OF_STATE[Attempt.State(attempt.state)]
    make = partial(_make, goal, occurred_at=attempt.occurred_at, attempt=attempt.attempt)
    tools = [
        make(
            kind=EventKind.UNKNOWN_TOOL,
            tool=name[:1000],
            attributes={NEAREST_TOOL: nearest} if nearest else {},
        )
        for name, nearest in unknown_tools
    ]
    record(goal.project_id, [make(kind=kind, **_details(attempt, kind)), *tools])


def record_degraded(
    goal: Goal, reason: str, attempts: int, ended_at: datetime, *, stubbed: bool
) -> None:
    """Store the terminal event of attempts that brought no valid answer.

    `ended_at` is the time of the last attempt.
    """
    status = "stubbed" if stubbed else "failed"
    fields = {"attempts": attempts, "reason": reason, "status": status}
    record(goal.project_id, [_make(goal, EventKind.DEGRADED, ended_at + AFTER, **fields)])


def provider_name(goal: Goal) -> str | None:
    """Return the provider's name; None if there is none, never an empty text."""
    model = goal.language_model
    return (model.provider.name or None) if model is not None else None


def model_name(goal: Goal) -> str | None:
    model = goal.language_model
    return (model.name or None) if model is not None else None


def _make(goal: Goal, kind: EventKind, occurred_at: datetime, **fields: Any) -> PostedEvent:
    schema = schema_of(goal)
    # Several tools of one attempt are several events.
    mark = f" {fields['tool']}" if "tool" in fields else ""
    return _event(
        goal,
        kind,
        occurred_at,
        mark,
        node=NODES[schema],
        cycle=goal.cycle,
        provider=provider_name(goal),
        model=model_name(goal),
        schema=schema.value,
        schema_version=SCHEMA_VERSIONS[schema],
        prompt_version=goal.planner_model.prompt_version or None,
        **fields,
    )


def _event(goal: Goal, kind: EventKind, at: datetime, mark: str = "", **fields: Any) -> PostedEvent:
    """Return an event; its id is derived from goal, node, cycle, attempt, name and mark."""
    name = event_name(fields["node"], kind)
    place = (fields["node"], fields["cycle"], fields.get("attempt"))
    return PostedEvent(
        event_id=event_id(at, goal.project_id, goal.correlation_id, *place, name + mark),
        name=name,
        occurred_at=at,
        correlation_id=goal.correlation_id,
        environment=goal.environment,
        source=goal.source,
        **fields,
    )


def _details(attempt: Attempt, kind: EventKind) -> dict[str, Any]:
    # The fix patterns that the prompt had, and those withheld.
    patterns = {
        "fix_patterns": attempt.told_patterns,
        "fix_patterns_withheld": attempt.withheld_patterns,
    }
    details: dict[str, Any] = {
        **{name: getattr(attempt, name) for name in SAME_IN_EVENT},
        "validation_errors": attempt.errors,
        "raw_output_preview": attempt.preview or None,
        "attributes": {
            "simplified": attempt.simplified,
            "transport_retries": attempt.transport_retries,
            **{name: " ".join(map(str, ids)) for name, ids in patterns.items() if ids},
        },
    }
    if kind is EventKind.SUCCEEDED:
        # A valid answer is shown with the goal, not stored as a diagnosis.
        details["raw_output_preview"] = None
    if kind is EventKind.PARSE_INVALID:
        details["parse_error_type"] = attempt.error_type
    if kind is EventKind.PROVIDER_ERROR:
        details["attributes"]["call_error_type"] = attempt.error_type
    return details


CHECK_NODE = "completion_check"
CHECK_SCHEMA = "CompletionDecision"
CHECK_SCHEMA_VERSION = "1"
PARSE_FAILED = f"{CHECK_NODE}_parse_failed"
PROVIDER_FAILED = "provider_failed"
_ERROR_TYPES: Mapping[str | None, ParseErrorType] = {
    UndecidedCause.MISSING_DECISION: ParseErrorType.NOT_JSON,
    UndecidedCause.EMPTY_FILE: ParseErrorType.EMPTY_OUTPUT,
    UndecidedCause.UNREADABLE_FILE: ParseErrorType.NOT_JSON,
    UndecidedCause.TOO_LARGE: ParseErrorType.NOT_JSON,
    UndecidedCause.UNKNOWN_TEXT: ParseErrorType.NOT_JSON,
    UndecidedCause.INVALID_JSON: ParseErrorType.NOT_JSON,
    UndecidedCause.TRUNCATED: ParseErrorType.TRUNCATED,
    UndecidedCause.OUTPUT_CUT: ParseErrorType.TRUNCATED,
    UndecidedCause.MULTIPLE_DOCUMENTS: ParseErrorType.MULTIPLE_OBJECTS,
    UndecidedCause.DUPLICATE_KEY: ParseErrorType.DUPLICATE_KEY,
}


def error_type_of(cause: str | None) -> ParseErrorType:
    # A StrEnum: its members are keys by their text.
    return _ERROR_TYPES.get(cause, ParseErrorType.SCHEMA_INVALID)


def record_check(goal: Goal, row: CompletionCheck) -> None:
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
    degraded_reason = PARSE_FAILED if is_undecided else PROVIDER_FAILED
    fields = {"attempts": attempts, "reason": degraded_reason, "status": "failed"}
    _record(goal, row, EventKind.DEGRADED, at, **fields)


def _record(goal: Goal, row: CompletionCheck, kind: EventKind, at: datetime, **fields: Any) -> None:
    by_model = row.kind == CompletionCheck.Kind.MODEL
    decided = {"decision": row.decision, "check_id_match": row.check_id_match}
    attributes = {
        "check_kind": row.kind,
        "decision_source": row.source,
        "iteration": row.iteration,
        **{name: value for name, value in decided.items() if value is not None},
    }
    if kind is not EventKind.DEGRADED:
        fields["attempt"] = row.number
    event = _event(
        goal,
        kind,
        at,
        node=CHECK_NODE,
        cycle=row.cycle,
        provider=provider_name(goal) if by_model else None,
        model=model_name(goal) if by_model else None,
        schema=CHECK_SCHEMA,
        schema_version=CHECK_SCHEMA_VERSION,
        attributes=attributes,
        **fields,
    )
    record(goal.project_id, [event])

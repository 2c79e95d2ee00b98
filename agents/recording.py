"""Events of goals, made from attempt rows: the same row always makes the same event (X-16)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from agents.core.actions.toolsets import ACTIONS_VERSION
from agents.core.interpreting import Schema
from agents.core.proposals import SCHEMA_VERSION
from agents.core.task_state import NODES
from agents.models import Attempt, Goal
from diagnostics.core.events import NEAREST_TOOL, Event, EventKind, event_name
from diagnostics.core.identifiers import event_id
from diagnostics.ingestion.recording import record
from plans.core.contract import CONTRACT_VERSION

SCHEMAS = {
    Goal.Mode.NEXT_STEP: Schema.NEXT_STEP,
    Goal.Mode.PLAN: Schema.PLAN,
    Goal.Mode.ACTIONS: Schema.ACTIONS,
}
SCHEMA_VERSIONS = {
    Schema.NEXT_STEP: SCHEMA_VERSION,
    Schema.PLAN: CONTRACT_VERSION,
    Schema.ACTIONS: ACTIONS_VERSION,
}
EVENT_OF_STATE = {
    Attempt.State.VALID: EventKind.SUCCEEDED,
    Attempt.State.INVALID: EventKind.PARSE_INVALID,
    Attempt.State.CALL_FAILED: EventKind.PROVIDER_ERROR,
}
# The terminal event comes after the attempt that caused it, also for whoever sorts by time.
AFTER = timedelta(milliseconds=1)


def schema_of(goal: Goal) -> Schema:
    """What the goal's planner is asked for."""
    return SCHEMAS[Goal.Mode(goal.mode)]


def record_attempt(
    goal: Goal, attempt: Attempt, unknown_tools: Sequence[tuple[str, str | None]]
) -> None:
    """Store the event of an attempt that has ended, and one for each tool nobody registered.

    `unknown_tools` gives each name with the nearest registered one (X-15).
    """
    if attempt.occurred_at is None:
        raise ValueError("an attempt has no event before it has ended")
    kind = EVENT_OF_STATE[Attempt.State(attempt.state)]
    events = [
        _make(
            goal,
            kind,
            attempt.occurred_at,
            attempt=attempt.attempt,
            **_details(attempt, kind),
        )
    ]
    events += [
        _make(
            goal,
            EventKind.UNKNOWN_TOOL,
            attempt.occurred_at,
            attempt=attempt.attempt,
            tool=name[:1000],
            attributes={NEAREST_TOOL: nearest} if nearest else {},
        )
        for name, nearest in unknown_tools
    ]
    record(goal.project_id, events)


def record_degraded(
    goal: Goal, reason: str, attempts: int, ended_at: datetime, *, stubbed: bool
) -> None:
    """Store the terminal event of a ladder that found no answer (S0-29, S0-39 to S0-43).

    `ended_at` is the time of its last attempt.
    """
    event = _make(
        goal,
        EventKind.DEGRADED,
        ended_at + AFTER,
        attempts=attempts,
        reason=reason,
        status="stubbed" if stubbed else "failed",
    )
    record(goal.project_id, [event])


def provider_name(goal: Goal) -> str | None:
    """The provider's name; None when there is none, never an empty text (S0-18)."""
    model = goal.language_model
    return (model.provider.name or None) if model is not None else None


def model_name(goal: Goal) -> str | None:
    """The model's name; None when there is none (S0-19)."""
    model = goal.language_model
    return (model.name or None) if model is not None else None


def _make(goal: Goal, kind: EventKind, occurred_at: datetime, **fields: Any) -> Event:  # noqa: ANN401 - event fields
    schema = schema_of(goal)
    node = NODES[schema]
    name = event_name(node, kind)
    number: int | None = fields.get("attempt")
    # Several tools of one attempt are several events.
    hashed = f"{name} {fields['tool']}" if "tool" in fields else name
    identity = (goal.project_id, goal.correlation_id, node, goal.cycle, number, hashed)
    return Event(
        event_id=event_id(occurred_at, *identity),
        name=name,
        occurred_at=occurred_at,
        correlation_id=goal.correlation_id,
        node=node,
        cycle=goal.cycle,
        provider=provider_name(goal),
        model=model_name(goal),
        schema=schema.value,
        schema_version=SCHEMA_VERSIONS[schema],
        prompt_version=goal.planner_model.prompt_version or None,
        environment=goal.environment,
        source=goal.source,
        **fields,
    )


def _details(attempt: Attempt, kind: EventKind) -> dict[str, Any]:
    details: dict[str, Any] = {
        "validation_errors": attempt.errors,
        "raw_output_preview": attempt.preview or None,
        "repairs": attempt.repairs,
        "coerced": attempt.coerced,
        "finish_reason": attempt.finish_reason,
        "output_mode": attempt.output_mode,
        "max_output_tokens": attempt.max_output_tokens,
        "temperature": attempt.temperature,
        "latency_ms": attempt.latency_ms,
        "input_tokens": attempt.input_tokens,
        "output_tokens": attempt.output_tokens,
        "attributes": {
            "simplified": attempt.simplified,
            "transport_retries": attempt.transport_retries,
            **_patterns(attempt),
        },
    }
    if kind is EventKind.SUCCEEDED:
        # What a good answer said is shown with the goal, not kept as a diagnosis.
        details["raw_output_preview"] = None
    if kind is EventKind.PARSE_INVALID:
        details["parse_error_type"] = attempt.error_type
    if kind is EventKind.PROVIDER_ERROR:
        details["attributes"]["call_error_type"] = attempt.error_type
    return details


def _patterns(attempt: Attempt) -> dict[str, str]:
    """The fix patterns that a prompt told or that were withheld, by number (X-14)."""
    named = {
        "fix_patterns": attempt.told_patterns,
        "fix_patterns_withheld": attempt.withheld_patterns,
    }
    return {name: " ".join(map(str, ids)) for name, ids in named.items() if ids}

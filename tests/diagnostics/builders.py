"""Events for tests, by default a failed first attempt."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from failsoft.events import PostedEvent

AT = datetime(2026, 11, 21, 14, 32, 7, 120_000, tzinfo=UTC)


def wire_event(**changes: object) -> dict[str, Any]:
    """Give an event as an agent sends it; a change to None leaves the field out."""
    event: dict[str, Any] = {
        "event_id": str(uuid4()),
        "name": "graph.next_step.parse_invalid",
        "occurred_at": AT.isoformat(),
        "correlation_id": "run-8842",
        "cycle": 1,
        "attempt": 1,
        "provider": "fake",
        "model": "fake-1",
        "parse_error_type": "not_json",
        "validation_errors": [{"path": "", "message": "expected an object"}],
        "raw_output_preview": "not json",
    }
    event.update(changes)
    return {key: value for key, value in event.items() if value is not None}


def make_event(**changes: object) -> PostedEvent:
    """Give the parsed event."""
    return PostedEvent.model_validate(wire_event(**changes))


def succeeded(**changes: object) -> dict[str, Any]:
    """Give a good attempt as an agent sends it."""
    return wire_event(
        **{
            "name": "graph.next_step.succeeded",
            "parse_error_type": None,
            "validation_errors": None,
            "raw_output_preview": None,
            **changes,
        }
    )


def degraded(**changes: object) -> dict[str, Any]:
    """Give a terminal degradation as an agent sends it."""
    return succeeded(
        **{
            "name": "graph.next_step.degraded",
            "attempt": None,
            "attempts": 2,
            "reason": "next_step_parse_failed",
            "status": "failed",
            **changes,
        }
    )

"""From the runs of the story to events that can be told from all others."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from agents.demo.answers import OUTPUT_LIMIT_TOKENS
from agents.demo.attempts import TEMPERATURE, DemoCall, Ladder
from agents.demo.traffic import NEAREST
from failsoft.events import NEAREST_TOOL, EventKind, PostedEvent, event_name
from failsoft.identifiers import uuid7
from failsoft.retry.answers import Misunderstood, Understood

MARK = bytes.fromhex("de3057a1150f")
"""The last 48 bits of every id of the demo: what carries them can be removed."""
ATTRIBUTES: dict[str, bool | int | float | str] = {"demo": True}


AFTER = timedelta(milliseconds=1)
"""The terminal event comes after the attempt that caused it."""


def demo_id(at: datetime, *parts: object) -> UUID:
    """Derive an id of the moment `at` that always ends in the demo's mark."""
    digest = sha256("\n".join(str(part) for part in parts).encode()).digest()
    return uuid7(at, digest[:4] + MARK)


def events_of(ladder: Ladder) -> Iterator[PostedEvent]:
    """Tell a run: an event a call, then the degradation or the tool nobody knows."""
    for call in ladder.calls:
        yield _event_of_call(ladder, call)
    if ladder.reason is not None:
        yield _event(
            ladder,
            EventKind.DEGRADED,
            attempts=len(ladder.calls),
            reason=ladder.reason,
            status="failed",
        )
    if ladder.unknown_tool is not None:
        nearest = {NEAREST_TOOL: NEAREST[ladder.unknown_tool]}
        event = _event(ladder, EventKind.UNKNOWN_TOOL, tool=ladder.unknown_tool)
        yield event.model_copy(update={"attributes": {**ATTRIBUTES, **nearest}})


def _event_of_call(ladder: Ladder, call: DemoCall) -> PostedEvent:
    match call.written.reading if call.written else None:
        case None:
            return _event(ladder, EventKind.PROVIDER_ERROR, call)
        case Misunderstood() as reading:
            return _event(
                ladder,
                EventKind.PARSE_INVALID,
                call,
                parse_error_type=reading.error_type,
                validation_errors=reading.errors,
                raw_output_preview=call.written.text if call.written else None,
                repairs=reading.repairs,
                coerced=reading.coerced,
            )
        case Understood() as reading:
            return _event(
                ladder,
                EventKind.SUCCEEDED,
                call,
                repairs=reading.repairs,
                coerced=reading.coerced,
            )


def _event(
    ladder: Ladder,
    kind: EventKind,
    call: DemoCall | None = None,
    **fields: Any,  # noqa: ANN401 - fields of Event
) -> PostedEvent:
    name = event_name(ladder.line.node, kind)
    occurred_at = call.ended_at if call else ladder.ended_at + AFTER
    number = call.number if call else None
    return PostedEvent(
        event_id=demo_id(occurred_at, ladder.correlation_id, ladder.cycle, number, name),
        name=name,
        occurred_at=occurred_at,
        correlation_id=ladder.correlation_id,
        cycle=ladder.cycle,
        attempt=number,
        provider=ladder.line.provider,
        model=ladder.line.model,
        schema=ladder.schema.value,
        schema_version=ladder.schema_version,
        prompt_version=ladder.prompt_version,
        environment=ladder.environment,
        source=ladder.line.source,
        release=ladder.release,
        attributes=_attributes_of(call),
        **(_details_of_call(ladder, call) if call else {}),
        **fields,
    )


def _attributes_of(call: DemoCall | None) -> dict[str, bool | int | float | str]:
    if call is None or call.error_type is None:
        return ATTRIBUTES
    return {**ATTRIBUTES, "call_error_type": call.error_type.value}


def _details_of_call(ladder: Ladder, call: DemoCall) -> dict[str, Any]:
    return {
        "finish_reason": call.written.finish_reason if call.written else None,
        "output_mode": call.output_mode,
        "max_output_tokens": OUTPUT_LIMIT_TOKENS[ladder.schema],
        "temperature": TEMPERATURE,
        "latency_ms": call.latency_ms,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
    }

"""What the events of a goal add to its attempts, and attempts that only events tell of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from diagnostics.failures.models import FailureGroup
from diagnostics.store.models import Event, EventPayload

Key = tuple[str, int, int]
STATES = {
    "succeeded": "valid",
    "parse_invalid": "invalid",
    "provider_error": "call_failed",
}


@dataclass(frozen=True, slots=True)
class Sighting:
    """The event of an attempt, and the failure group it was counted in."""

    event_id: UUID | None = None
    group_id: int | None = None
    seen: int = 0


Seen = Mapping[Key, Sighting]


@dataclass(frozen=True, slots=True)
class ReportedAttempt:
    """An attempt as its event tells it: what a row of ours would say, as far as it is known."""

    pk: str
    node: str
    cycle: int
    attempt: int
    state: str
    called_at: datetime
    error_type: str | None = None
    provider: str | None = None
    model: str | None = None
    output_mode: str | None = None
    simplified: bool = False
    max_output_tokens: int | None = None
    temperature: float | None = None
    errors: Sequence[Any] = ()
    preview: str = ""
    repairs: Sequence[Any] = ()
    coerced: Sequence[Any] = ()
    finish_reason: str | None = None
    latency_ms: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    feedback: str = ""
    dropped_constraints: Sequence[Any] = ()
    told_patterns: Sequence[int] = ()
    withheld_patterns: Sequence[int] = ()
    transport_retries: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)


def sightings_of(
    project_id: int, events: Iterable[Event], payloads: Mapping[UUID, EventPayload]
) -> dict[Key, Sighting]:
    """Return the events of attempts by (node, cycle, attempt), with their groups; one query."""
    prints = {
        event.event_id: payloads[event.event_id].fingerprint
        for event in events
        if event.event_id in payloads
    }
    wanted = {found for found in prints.values() if found is not None}
    groups = {
        fingerprint: (pk, seen)
        for fingerprint, pk, seen in FailureGroup.objects.filter(
            project_id=project_id, fingerprint__in=wanted
        ).values_list("fingerprint", "pk", "seen")
    }
    found = {}
    for event in events:
        if event.attempt is None or event.kind not in STATES:
            continue
        print_of = prints.get(event.event_id)
        group_id, seen = groups.get(print_of, (None, 0)) if print_of else (None, 0)
        key = (event.node, event.cycle, event.attempt)
        found[key] = Sighting(event.event_id, group_id, seen)
    return found


def told_attempts(
    events: Iterable[Event], payloads: Mapping[UUID, EventPayload]
) -> list[ReportedAttempt]:
    """Return the attempts that events tell of, in their order."""
    return [_told(event, payloads.get(event.event_id)) for event in events if event.kind in STATES]


def _told(event: Event, payload: EventPayload | None) -> ReportedAttempt:
    detail: dict[str, Any] = {}
    if payload is not None:
        detail = {
            "errors": payload.validation_errors,
            "preview": payload.raw_output_preview or "",
            "repairs": payload.repairs,
            "coerced": payload.coerced,
            "temperature": payload.temperature,
            "max_output_tokens": payload.max_output_tokens,
            "attributes": payload.attributes,
        }
    return ReportedAttempt(
        pk=str(event.event_id),
        node=event.node,
        cycle=event.cycle,
        attempt=event.attempt or 1,
        state=STATES[event.kind],
        called_at=event.occurred_at,
        error_type=event.parse_error_type or event.call_error_type,
        provider=event.provider,
        model=event.model,
        output_mode=event.output_mode,
        simplified=bool(event.is_simplified),
        finish_reason=event.finish_reason,
        latency_ms=event.latency_ms,
        input_tokens=event.input_tokens,
        output_tokens=event.output_tokens,
        **detail,
    )

"""What the events of a goal add to its attempts, and attempts that only events tell of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from agents.goals.events import STATE_OF
from agents.goals.models import Attempt
from agents.llm.provider import ANSWERERS
from diagnostics.failures.models import FailureGroup
from diagnostics.store.models import Event, EventPayload

Key = tuple[str, int, int]
COUNTED = ("latency_ms", "input_tokens", "output_tokens", "reasoning_tokens")


@dataclass(frozen=True, slots=True)
class Sighting:
    """The event of an attempt, and the failure group it was counted in."""

    event_id: UUID | None = None
    group_id: int | None = None
    seen: int = 0


Seen = Mapping[Key, Sighting]


def sightings_of(
    project_id: int, events: Iterable[Event], payloads: Mapping[UUID, EventPayload]
) -> dict[Key, Sighting]:
    """Return the events of attempts by (node, cycle, attempt), with their groups; one query."""
    prints = {
        event.event_id: payloads[event.event_id].fingerprint
        for event in events
        if event.event_id in payloads
    }
    wanted = {sightings for sightings in prints.values() if sightings is not None}
    groups = {
        fingerprint: (pk, seen)
        for fingerprint, pk, seen in FailureGroup.objects.filter(
            project_id=project_id, fingerprint__in=wanted
        ).values_list("fingerprint", "pk", "seen")
    }
    sightings = {}
    for event in events:
        if event.attempt is None or event.kind not in STATE_OF:
            continue
        print_of = prints.get(event.event_id)
        group_id, seen = groups.get(print_of, (None, 0)) if print_of else (None, 0)
        key = (event.node, event.cycle, event.attempt)
        sightings[key] = Sighting(event.event_id, group_id, seen)
    return sightings


def reported_attempts(
    events: Iterable[Event], payloads: Mapping[UUID, EventPayload]
) -> list[Attempt]:
    """Return the attempts that events tell of, in their order: rows that are stored nowhere."""
    return [
        _reported(event, payloads.get(event.event_id)) for event in events if event.kind in STATE_OF
    ]


def _reported(event: Event, payload: EventPayload | None) -> Attempt:
    """Say what a row of ours would say, as far as it is known."""
    same = ("node", "cycle", "provider", "model", "output_mode", "finish_reason")
    fields = {name: getattr(event, name) for name in (*same, *COUNTED, *ANSWERERS)}
    fields["max_output_tokens"] = payload.max_output_tokens if payload else None
    attempt = Attempt(
        attempt=event.attempt or 1,
        state="unchecked" if event.unchecked else STATE_OF[event.kind],
        called_at=event.occurred_at,
        error_type=event.parse_error_type or event.call_error_type,
        simplified=bool(event.is_simplified),
        **fields,
    )
    # The page names parts of itself after it.
    attempt.pk = str(event.event_id)
    if payload is not None:
        attempt.errors, attempt.preview = (
            payload.validation_errors,
            payload.raw_output_preview or "",
        )
        attempt.repairs, attempt.coerced = payload.repairs, payload.coerced
        attempt.temperature = payload.temperature
    return attempt

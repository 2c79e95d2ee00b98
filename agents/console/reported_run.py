"""What the page of a run reads of events, where an external agent reported it."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from agents.console.headlines import Ending, outside_headline
from agents.console.moments import TOLD_EVENTS, cycles_of
from agents.console.sightings import reported_attempts, sightings_of
from agents.goals.events import STATE_OF
from diagnostics.queries.events import events_of, payloads_of
from diagnostics.store.models import Event, EventPayload

MOST_EVENTS = 100
LAST = 2**31
FACTS = (
    "environment",
    "source",
    "release",
    "prompt_version",
    "schema",
    "schema_version",
    "region",
    "credential",
)


def events_with(project_id: int, reference: str) -> list[Event]:
    """Return the newest events with a reference, oldest first."""
    if "\0" in reference or not reference:
        return []
    mine = events_of(project_id).filter(correlation_id=reference)
    # Agents may write one time on a whole run: attempts then go by number.
    return sorted(mine[:MOST_EVENTS], key=lambda event: (event.occurred_at, event.attempt or LAST))


def reported_context(project_id: int, events: Sequence[Event]) -> Mapping[str, Any]:
    """Read everything the page shows; two queries."""
    payloads = payloads_of(events)
    attempts = reported_attempts(events, payloads)
    endings = [
        Ending(event.kind, event.reason, event.status)
        for event in events
        if event.kind in TOLD_EVENTS
    ]
    tone, headline = outside_headline([attempt.state for attempt in attempts], endings)
    sightings = sightings_of(project_id, events, payloads)
    return {
        "tone": tone,
        "headline": headline,
        "cycles": cycles_of(attempts, events, [], sightings),
        "calls": len(attempts),
        "tokens": sum((a.input_tokens or 0) + (a.output_tokens or 0) for a in attempts),
        "called_ms": sum(a.latency_ms or 0 for a in attempts),
        "last": events[-1],
        "is_cut": len(events) == MOST_EVENTS,
        "facts": [(name.replace("_", " "), _known(events, name)) for name in FACTS],
        "attributes": _attributes(events, payloads),
    }


def _known(events: Sequence[Event], name: str) -> str:
    values = dict.fromkeys(getattr(event, name) for event in events)
    return ", ".join(value for value in values if value)


def _attributes(
    events: Sequence[Event], payloads: Mapping[UUID, EventPayload]
) -> list[tuple[str, Any]]:
    """Return the custom attributes of attempts; the latest value counts."""
    attributes: dict[str, Any] = {}
    for event in events:
        if event.kind in STATE_OF and event.event_id in payloads:
            attributes |= payloads[event.event_id].attributes
    return sorted(attributes.items())

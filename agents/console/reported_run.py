"""The page of a run that an outside agent sent: its events, told like a goal."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse
from django.urls import reverse

from agents.console.headlines import Ending, outside_headline
from agents.console.moments import TOLD_EVENTS, cycles_of
from agents.console.sightings import sightings_of, told_attempts
from agents.goals.events import STATE_OF
from diagnostics.queries.events import events_of, payloads_of
from diagnostics.store.models import Event, EventPayload
from diagnostics.web.access import ConsoleRequest
from diagnostics.web.pages import respond

MOST_EVENTS = 100
LAST = 2**31
FACTS = ("environment", "source", "release", "prompt_version", "schema", "schema_version")


def show_outside(request: ConsoleRequest, reference: str) -> HttpResponse:
    """Show the events that carry a reference; a reference of nobody is not found."""
    events = events_with(request.project.pk, reference)
    if not events:
        raise Http404
    return show_events(request, reference, events)


def show_events(request: ConsoleRequest, reference: str, events: Sequence[Event]) -> HttpResponse:
    """Show a run by the events that were found."""
    context = outside_context(request.project.pk, reference, events)
    return respond(request, "goals/outside", {**context, "section": "goals"}, context["headline"])


def events_with(project_id: int, reference: str) -> list[Event]:
    """Return the newest events with a reference, oldest first."""
    if "\0" in reference or not reference:
        return []
    mine = events_of(project_id).filter(correlation_id=reference)
    return sorted(mine[:MOST_EVENTS], key=_place)


def _place(event: Event) -> tuple[datetime, int]:
    """Agents may write one time on a whole run: attempts then go by number."""
    return event.occurred_at, event.attempt or LAST


def outside_context(project_id: int, reference: str, events: Sequence[Event]) -> Mapping[str, Any]:
    """Read everything the page shows; two queries."""
    payloads = payloads_of(events)
    attempts = told_attempts(events, payloads)
    endings = [
        Ending(event.kind, event.reason, event.status)
        for event in events
        if event.kind in TOLD_EVENTS
    ]
    tone, headline = outside_headline([told.state for told in attempts], endings)
    seen = sightings_of(project_id, events, payloads)
    first, last = events[0], events[-1]
    export = reverse("export", args=["events", "ndjson"])
    return {
        "reference": reference,
        "tone": tone,
        "headline": headline,
        "cycles": cycles_of(attempts, events, [], seen),
        "calls": len(attempts),
        "tokens": sum((a.input_tokens or 0) + (a.output_tokens or 0) for a in attempts),
        "called_ms": sum(a.latency_ms or 0 for a in attempts),
        "first": first,
        "last": last,
        "took": last.occurred_at - first.occurred_at,
        "is_cut": len(events) == MOST_EVENTS,
        "facts": [(name.replace("_", " "), _known(events, name)) for name in FACTS],
        "attributes": _attributes(events, payloads),
        "export": export,
    }


def _known(events: Sequence[Event], name: str) -> str:
    values = dict.fromkeys(getattr(event, name) for event in events)
    return ", ".join(value for value in values if value)


def _attributes(
    events: Sequence[Event], payloads: Mapping[UUID, EventPayload]
) -> list[tuple[str, Any]]:
    """Return what the agent added of its own to attempts; the latest word counts."""
    found: dict[str, Any] = {}
    for event in events:
        if event.kind in STATE_OF and event.event_id in payloads:
            found |= payloads[event.event_id].attributes
    return sorted(found.items())

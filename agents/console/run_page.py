"""The page of a run: its attempts, how it ended, and of a goal its plan and its answers.

What an external agent reported is read of its events."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from agents.badges import outcome_badge
from agents.console.goal_forms import AnswerForm
from agents.console.goal_page import goal_context
from agents.console.headlines import Ending, outside_headline
from agents.console.moments import TOLD_EVENTS, cycles_of, reported_attempts, sightings_of
from agents.goals.events import STATE_OF
from agents.goals.models import Goal
from agents.goals.records import find_goal, goal_path, run_path
from diagnostics.figures import read_number
from diagnostics.prices.prices import costs_of
from diagnostics.store.models import Event, events_of, payloads_of
from diagnostics.store.run_models import AgentRun
from diagnostics.web.pages import ConsoleRequest, member_page, respond
from failsoft.identifiers import read_uuid
from plans.models.run import Run

MOST_EVENTS = 100
LAST = 2**31
FACTS = (
    *("environment", "source", "release", "prompt_version", "schema", "schema_version"),
    *("region", "credential"),
)


@member_page
def run(request: ConsoleRequest, reference: str) -> HttpResponse:
    """Show a run by its correlation id; a foreign and an unknown one are both not found."""
    goal = find_goal(request.project.pk, reference)
    try:
        return show_run(request, goal.correlation_id if goal else reference, goal, AnswerForm())
    except Http404:
        # Plan runs stood here before: links in mails and trackers stay good.
        run_id = read_uuid(reference)
        if run_id and Run.objects.filter(project=request.project, pk=run_id).exists():
            return _to(reverse("plan_run", args=[run_id]), request)
        raise


@member_page
def moved_goal(request: ConsoleRequest, reference: str) -> HttpResponse:
    """Lead from an address that a goal had before to its run's page."""
    goal = find_goal(request.project.pk, reference)
    if goal is None and not events_with(request.project.pk, reference):
        raise Http404
    return _to(goal_path(goal) if goal else run_path(reference), request)


def show_run(
    request: ConsoleRequest, reference: str, goal: Goal | None, answer: AnswerForm
) -> HttpResponse:
    """Render the page of a run, with the answer form as it is; 404 where nothing is known."""
    project_id = request.project.pk
    if goal is not None:
        shown = goal_context(goal, read_number(request.GET.get("from")) or 0)
    elif events := events_with(project_id, reference):
        shown = reported_context(project_id, events)
    else:
        raise Http404
    context = {
        **_sums(project_id, reference),
        **shown,
        "reference": reference,
        "goal": goal,
        "export": reverse("export", args=["events", "ndjson"]),
        "answer_form": answer,
        "section": "runs",
    }
    return respond(request, "runs/run", context, context["headline"])


def _sums(project_id: int, reference: str) -> Mapping[str, Any]:
    row = AgentRun.objects.filter(project_id=project_id, correlation_id=reference).first()
    if row is None:
        return {}
    return {
        "run": row,
        "run_outcome": outcome_badge(row.outcome),
        "cost": costs_of(project_id, [row]).get(reference),
        "run_took": row.ended_at - row.began_at,
        "facts": [
            (name.replace("_", " "), getattr(row, name)) for name in FACTS if hasattr(row, name)
        ],
    }


def _to(path: str, request: ConsoleRequest) -> HttpResponse:
    query = request.GET.urlencode()
    mark = "&" if "?" in path else "?"
    return redirect(f"{path}{mark}{query}" if query else path)


def events_with(project_id: int, reference: str) -> list[Event]:
    """Return the newest events with a reference, oldest first."""
    if "\0" in reference or not reference:
        return []
    events = events_of(project_id).filter(correlation_id=reference)
    # Agents may write one time on a whole run: attempts then go by number.
    return sorted(
        events[:MOST_EVENTS], key=lambda event: (event.occurred_at, event.attempt or LAST)
    )


def reported_context(project_id: int, events: Sequence[Event]) -> Mapping[str, Any]:
    """Read everything the page shows; two queries."""
    payloads = payloads_of(events)
    attempts = reported_attempts(events, payloads)
    endings = [
        Ending(event.kind, event.reason, event.status)
        for event in events
        if event.kind in TOLD_EVENTS
    ]
    numbers = [event.attempt for event in events if event.kind in STATE_OF]
    # Calls of spans are numbered after a while.
    most = len(numbers) if None in numbers else max(filter(None, numbers), default=0)
    tone, headline = outside_headline([attempt.state for attempt in attempts], endings, most)
    sightings = sightings_of(project_id, events, payloads)
    # Custom ones of attempts; the latest value counts.
    attributes: dict[str, Any] = {}
    for event in events:
        if event.kind in STATE_OF and event.event_id in payloads:
            attributes |= payloads[event.event_id].attributes
    return {
        "tone": tone,
        "headline": headline,
        "cycles": cycles_of(attempts, events, [], sightings),
        "calls": len(attempts),
        "tokens": sum((a.input_tokens or 0) + (a.output_tokens or 0) for a in attempts),
        "called_ms": sum(a.latency_ms or 0 for a in attempts),
        "last": events[-1],
        "is_cut": len(events) == MOST_EVENTS,
        "facts": [
            (
                name.replace("_", " "),
                ", ".join(filter(None, dict.fromkeys(map(attrgetter(name), events)))),
            )
            for name in FACTS
        ],
        "attributes": sorted(attributes.items()),
    }

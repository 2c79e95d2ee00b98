"""The page of a run: its attempts, how it ended, and of a goal its plan and its answers."""

from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from agents.badges import outcome_badge
from agents.console.goal_forms import AnswerForm
from agents.console.goal_page import goal_context
from agents.console.keyset import read_id
from agents.console.reported_run import FACTS, events_with, reported_context
from agents.goals import records
from agents.goals.models import Goal
from agents.goals.records import goal_path, run_path
from diagnostics.figures import read_number
from diagnostics.prices.run_costs import costs_of
from diagnostics.store.run_models import AgentRun
from diagnostics.web.access import ConsoleRequest, member_page
from diagnostics.web.pages import respond
from plans.models.run import Run


@member_page
def run(request: ConsoleRequest, reference: str) -> HttpResponse:
    """Show a run by its correlation id; a foreign and an unknown one are both not found."""
    goal = find_goal(request.project.pk, reference)
    try:
        return show_run(request, goal.correlation_id if goal else reference, goal, AnswerForm())
    except Http404:
        # Plan runs stood here before: links in mails and trackers stay good.
        if plan_run := _find_plan_run(request, reference):
            return _to(reverse("plan_run", args=[plan_run.pk]), request)
        raise


@member_page
def moved_goal(request: ConsoleRequest, reference: str) -> HttpResponse:
    """Lead from an address that a goal had before to its run's page."""
    goal = find_goal(request.project.pk, reference)
    if goal is None and not events_with(request.project.pk, reference):
        raise Http404
    return _to(goal_path(goal) if goal else run_path(reference), request)


def find_goal(project_id: int, reference: str) -> Goal | None:
    """Return the goal with this correlation id or id; no text that is stored holds NUL."""
    return None if "\0" in reference else records.find_goal(project_id, reference)


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
    """Read what the list of runs says of one, if it has events."""
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


def _find_plan_run(request: ConsoleRequest, reference: str) -> Run | None:
    run_id = read_id(reference)
    return Run.objects.filter(project=request.project, pk=run_id).first() if run_id else None


def _to(path: str, request: ConsoleRequest) -> HttpResponse:
    query = request.GET.urlencode()
    mark = "&" if "?" in path else "?"
    return redirect(f"{path}{mark}{query}" if query else path)

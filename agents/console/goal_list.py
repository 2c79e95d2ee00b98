"""The list of goals: newest first, by keyset, narrowed by the filter bar and status."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.badges import attempt_label, goal_badge, outcome_badge
from agents.console.keyset import page_by_id
from agents.goals.api import GoalsView
from agents.goals.filters import narrow_goals
from agents.goals.models import Attempt, Goal
from agents.goals.planning_stops import stops_of
from agents.goals.records import goal_path
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.console.exports import stream_list
from diagnostics.selection.selection import Selection
from diagnostics.store.leases import UNFINISHED
from diagnostics.web.access import ConsoleRequest, member_view
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import respond

PAGE = 40
COUNT_CAP = 10_000


@require_safe
@member_view
def goals(request: ConsoleRequest) -> HttpResponse:
    """Show a page of goals."""
    selection = read_filters(request)
    status = request.GET.get("status", "")
    matching = _matching(request.project, selection, status)
    page = page_by_id(_whole(matching), request.GET, PAGE)
    rows = [_row(goal) for goal in page["found"]]
    live = any(goal.status in UNFINISHED for goal in page["found"])
    context = {
        **page,
        "rows": rows,
        "total": matching.order_by()[: COUNT_CAP + 1].count(),
        "cap": COUNT_CAP,
        "status": status,
        "narrowed": bool(selection.terms or selection.text.words or status),
        "none_yet": not rows and not Goal.objects.filter(project=request.project).exists(),
        "longer": selection.query(range="90d"),
        "statuses": list(Goal.Status),
        "live": live,
        # A stop explains only what does not move.
        "stops": stops_of(request.project) if live else [],
        "section": "goals",
        **filter_frame(request, selection, export="goals", kept=("status",), notice=None),
    }
    return respond(request, "goals/list", context, "Goals")


def _matching(project: Project, selection: Selection, status: str) -> QuerySet[Goal]:
    since, until = selection.window(clock.now())
    found = Goal.objects.filter(project=project)
    if status in list(Goal.Status):
        found = found.filter(status=status)
    # A goal of this very moment is not younger than now.
    return narrow_goals(found, selection, since, until if selection.end else None)


def _whole(matching: QuerySet[Goal]) -> QuerySet[Goal]:
    """Read goals with what a line of the list says of their runs, models and attempts."""
    needed = ("goal_id", "state", "error_type", "input_tokens", "output_tokens")
    attempts = Attempt.objects.only(*needed).order_by("goal_id", "called_at")
    return matching.select_related("current_run", "language_model__provider").prefetch_related(
        Prefetch("attempts", attempts)
    )


def _row(goal: Goal) -> Mapping[str, Any]:
    attempts = list(goal.attempts.all())
    run = goal.current_run
    return {
        "goal": goal,
        "url": goal_path(goal),
        "badge": goal_badge(goal.status, run.task_status if run else None),
        "outcome": outcome_badge(goal.outcome),
        "attempts": [attempt_label(a.state, a.error_type) for a in attempts],
        "tokens": sum((a.input_tokens or 0) + (a.output_tokens or 0) for a in attempts),
        "took": goal.ended_at - goal.created_at if goal.ended_at else None,
    }


@require_safe
@member_view
def export_goals(request: ConsoleRequest, ending: str) -> HttpResponse:
    """Stream goals, newest first."""
    return stream_list(request, GoalsView, "goals", ending)


PATTERNS = tomllib.loads(Path(__file__).with_name("goal_patterns.toml").read_text("utf-8"))


@require_safe
def patterns(request: HttpRequest) -> HttpResponse:
    """Show example goals; open to everybody, for it holds nothing of anybody."""
    return render(request, "goals/patterns.html", {**PATTERNS, "section": "goals"})

"""The list of goals: newest first, by keyset, narrowed by the filter bar and status."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.badges import Badge, attempt_label, goal_badge, outcome_badge
from agents.goals.api import GoalsView
from agents.goals.filters import narrow_goals
from agents.goals.models import Attempt, Goal
from agents.goals.planning_stops import stops_of
from agents.goals.records import goal_path
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.console.exports import stream_list
from diagnostics.rest.cursors import BadCursorError, read_key
from diagnostics.selection.selection import Selection
from diagnostics.web.access import ConsoleRequest, member_view
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import respond

PAGE = 40
COUNT_CAP = 10_000
UNFINISHED = frozenset({"queued", "running"})


@dataclass(frozen=True, slots=True)
class GoalRow:
    """A goal as a line of the list."""

    goal: Goal
    url: str
    badge: Badge
    outcome: Badge | None
    attempts: list[Badge]
    tokens: int
    took: timedelta | None


@require_safe
@member_view
def goals(request: ConsoleRequest) -> HttpResponse:
    """Show a page of goals."""
    selection = read_filters(request)
    chosen = request.GET
    status = chosen.get("status", "")
    matching = _matching(request.project, selection, status)
    page = _page(matching, chosen)
    rows = [_row(goal) for goal in page["goals"]]
    live = any(row.goal.status in UNFINISHED for row in rows)
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


def _page(matching: QuerySet[Goal], chosen: QueryDict) -> Mapping[str, Any]:
    """Cut a page before or after an id; ids carry the time, so their order is the time's."""
    needed = ("goal_id", "state", "error_type", "input_tokens", "output_tokens")
    attempts = Attempt.objects.only(*needed).order_by("goal_id", "called_at")
    full = matching.select_related("current_run", "language_model__provider").prefetch_related(
        Prefetch("attempts", attempts)
    )
    if newer_than := _cursor(chosen.get("after")):
        found = list(full.filter(pk__gt=newer_than).order_by("pk")[: PAGE + 1])
        more, shown = len(found) > PAGE, found[:PAGE][::-1]
        return _window(shown, newer=more, older=True)
    older_than = _cursor(chosen.get("before"))
    if older_than:
        full = full.filter(pk__lt=older_than)
    found = list(full.order_by("-pk")[: PAGE + 1])
    return _window(found[:PAGE], newer=older_than is not None, older=len(found) > PAGE)


def _window(shown: list[Goal], *, newer: bool, older: bool) -> Mapping[str, Any]:
    return {
        "goals": shown,
        "newer": shown[0].pk if shown and newer else None,
        "older": shown[-1].pk if shown and older else None,
    }


def _cursor(text: str | None) -> UUID | None:
    try:
        return read_key(text, UUID) if text else None
    except BadCursorError:
        return None


def _row(goal: Goal) -> GoalRow:
    attempts = list(goal.attempts.all())
    run = goal.current_run
    return GoalRow(
        goal=goal,
        url=goal_path(goal),
        badge=goal_badge(goal.status, run.task_status if run else None),
        outcome=outcome_badge(goal.outcome),
        attempts=[attempt_label(a.state, a.error_type) for a in attempts],
        tokens=sum((a.input_tokens or 0) + (a.output_tokens or 0) for a in attempts),
        took=goal.ended_at - goal.created_at if goal.ended_at else None,
    )


@require_safe
@member_view
def export_goals(request: ConsoleRequest, ending: str) -> HttpResponse:
    """Stream goals, newest first."""
    return stream_list(request, GoalsView, "goals", ending)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern: when it fits, goals that follow it, and why it works."""

    title: str
    why: str
    examples: tuple[str, ...]


PATTERNS = (
    Pattern(
        "One outcome",
        "A goal that names a single result leaves the planner little to get wrong.",
        ("Greet Ada by name.", "Fetch https://example.com and give its status."),
    ),
    Pattern(
        "A short list of steps, in order",
        "Steps that are written one after another become the steps of the plan.",
        ("Fetch the price list, then take the field total, then say it in one sentence.",),
    ),
    Pattern(
        "Values given with the goal",
        "Names, addresses and numbers in the goal need not be found out first.",
        ('From {"total": 42, "currency": "EUR"} take the total.',),
    ),
    Pattern(
        "Wishes apart from conditions",
        "Optional constraints may be dropped by the last attempt; required ones never are.",
        ("Goal: write a greeting. Required: under 100 characters. Optional: in rhyme.",),
    ),
)


@require_safe
def patterns(request: HttpRequest) -> HttpResponse:
    """Show example goals; open to everybody, for it holds nothing of anybody."""
    return render(request, "goals/patterns.html", {"patterns": PATTERNS, "section": "goals"})

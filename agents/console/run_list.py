"""The list of runs: everything that any agent did, our own goals and others alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Collate
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from agents.badges import goal_badge, outcome_badge
from agents.goals.claims import stops_of
from agents.goals.models import Goal
from agents.goals.records import goal_path, run_path
from diagnostics import clock
from diagnostics.console.exports import stream_list
from diagnostics.console.live import POLL_SECONDS, tail_context
from diagnostics.console.run_api import AgentRunsView
from diagnostics.prices.prices import costs_of
from diagnostics.queries.runs import SEARCHES, read_runs, searches_events
from diagnostics.rest.cursors import BadCursorError
from diagnostics.selection.selection import NARROWED, Selection
from diagnostics.store.leases import UNFINISHED
from diagnostics.store.run_models import AgentRun
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import ConsoleRequest, member_page, respond
from diagnostics.web.sorting import ColumnSort
from failsoft.events import CallErrorType, ParseErrorType

PAGE = 40
MOST_WAITING = 10
FOLLOWED = {"": "List", "runs": "Follow runs", "calls": "Follow calls"}
ERRORS = frozenset((*ParseErrorType, *CallErrorType))
IN_PROGRESS = (*UNFINISHED, Goal.Status.WAITING_USER)
KEPT = ("follow", "status", "sort")
GOAL_SEARCHES = (*SEARCHES, "goal_references")
# Sorted are the newest runs that match, so that any order costs as much as a longer page.
MOST_SORTED = 500
FIGURES: Mapping[str, Callable[[AgentRun], Any]] = {
    "attempts": lambda run: run.attempts,
    "tokens": lambda run: run.input_tokens + run.output_tokens,
    "duration": lambda run: run.ended_at - run.began_at,
}
HEADS = {name: name.capitalize() for name in FIGURES}


@member_page
def runs(request: ConsoleRequest) -> HttpResponse:
    selection = read_filters(request)
    follow = request.GET.get("follow", "")
    shown = (
        {**tail_context(request, selection), **filter_frame(request, selection, kept=KEPT)}
        if follow == "calls"
        else _page(request, selection)
    )
    context = {
        **shown,
        "follow": follow if follow in FOLLOWED else "",
        "follows": FOLLOWED.items(),
        "seconds": POLL_SECONDS,
        "section": "runs",
    }
    return respond(request, "runs/list", context, "Runs")


@member_page
def moved_live(request: ConsoleRequest) -> HttpResponse:
    """Lead from the tail's old address to the list that follows calls."""
    params = request.GET.copy()
    params["follow"] = "calls"
    return redirect(f"{reverse('runs')}?{params.urlencode()}")


def _page(request: ConsoleRequest, selection: Selection) -> Mapping[str, Any]:
    status = request.GET.get("status", "")
    status = status if status in list(Goal.Status) else ""
    cursor = request.GET.get("cursor")
    now = clock.now()
    timed = replace(selection, begin=selection.window(now)[0])

    sort = ColumnSort.read(request.GET)
    figure = None if request.GET.get("follow") else FIGURES.get(sort.column)
    asked = (request.project.pk, timed, MOST_SORTED if figure else PAGE)
    searched = (now, partial(_keep_status, status=status), GOAL_SEARCHES)
    try:
        page = read_runs(*asked, cursor, *searched)
    except BadCursorError:
        page = read_runs(*asked, None, *searched)
    rows = sort.order(page.runs, figure)[:PAGE] if figure else page.runs
    waiting = [] if cursor else _waiting(request, status)
    notice = NARROWED if searches_events(selection) else None
    recorded = AgentRun.objects.filter(project_id=request.project.pk)
    return {
        "rows": _rows(request.project.pk, rows),
        "heads": sort.heads(HEADS, request.GET),
        "sorted": len(page.runs) if figure else 0,
        "after": page.after,
        "reached": page.reached,
        "is_first": not cursor,
        "is_followed": selection.end is None or selection.end > now,
        "waiting": waiting[:MOST_WAITING],
        "more_waiting": len(waiting) > MOST_WAITING,
        "stops": stops_of(request.project) if waiting else [],
        "status": status,
        "is_narrowed": bool(selection.terms or selection.text.words or status or cursor),
        "none_yet": not (page.runs or waiting) and not recorded.exists(),
        **filter_frame(
            request,
            selection,
            export="runs",
            exported={"status": status} if status else {},
            kept=KEPT,
            notice=notice,
        ),
    }


def _waiting(request: ConsoleRequest, status: str) -> Sequence[Mapping[str, Any]]:
    """Return goals that have not ended, newest first: a run is listed once it has events."""
    goals = Goal.objects.filter(project=request.project, status__in=IN_PROGRESS)
    if status:
        goals = goals.filter(status=status)
    newest = goals.order_by("-pk")[: MOST_WAITING + 1]
    return [
        {"goal": goal, "url": goal_path(goal), "badge": goal_badge(goal.status, None)}
        for goal in newest
    ]


def _rows(project_id: int, rows: Sequence[AgentRun]) -> Sequence[Mapping[str, Any]]:
    costs = costs_of(project_id, rows)
    goals = Goal.objects.filter(
        project_id=project_id, correlation_id__in=[run.correlation_id for run in rows]
    )
    texts = dict(goals.values_list("correlation_id", "text_preview"))
    return [
        {
            "run": run,
            "url": run_path(run.correlation_id),
            "badge": outcome_badge(run.outcome),
            "error": _error(run),
            "text": texts.get(run.correlation_id, ""),
            "tokens": run.input_tokens + run.output_tokens or None,
            "cost": costs.get(run.correlation_id),
            "took": run.ended_at - run.began_at,
        }
        for run in rows
    ]


def _error(run: AgentRun) -> str:
    """Return the kind of failure: how a provider failed, where that is known."""
    kinds = [kind for kind in run.kinds if kind in ERRORS]
    return min(kinds, key=lambda kind: kind == CallErrorType.PROVIDER_ERROR, default="")


def _keep_status(runs: QuerySet[AgentRun], status: str) -> QuerySet[AgentRun]:
    if not status:
        return runs
    # The order of its index; a run compares byte by byte.
    reference = Collate(OuterRef("correlation_id"), "default")
    goals = Goal.objects.filter(project_id=OuterRef("project_id"), correlation_id=reference)
    return runs.filter(Exists(goals.filter(status=status)))


class ConsoleRunsView(AgentRunsView):
    """The runs of the API, for a file of what the page shows."""

    searches = GOAL_SEARCHES
    own = {**AgentRunsView.own, "status": (list(Goal.Status), _keep_status)}


@member_page
def export_runs(request: ConsoleRequest, ending: str) -> HttpResponse:
    return stream_list(request, ConsoleRunsView, "runs", ending)

"""The list of plan runs, by keyset, and the page of one: how it stands, its graph, its steps, and
what a person can do about it."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpResponse, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect

from agents.badges import run_badge
from agents.console.headlines import StepCounts, run_headline, run_tone
from agents.console.run_reading import (
    SHOWS,
    UNDECIDED,
    StepWindow,
    Traces,
    count_steps,
    graph_step,
    read_arguments,
    read_undecided,
    read_window,
    shown_json,
    step_row,
)
from agents.goals.models import Goal
from agents.goals.records import goal_path
from diagnostics.accounts.audit_log import note, noting
from diagnostics.accounts.models import Project
from diagnostics.figures import plural, read_number
from diagnostics.store.leases import UNFINISHED
from diagnostics.web.charts.plan_graph import MOST_STEPS, GraphStep
from diagnostics.web.pages import ConsoleRequest, member_action, member_page, require_actor, respond
from failsoft.identifiers import read_uuid
from plans.models.run import Run, RunStep
from plans.runs.ended_runs import Verdict, resolve_steps
from plans.runs.ended_runs import rerun as repeat
from plans.runs.records import results_document
from plans.runs.step_calls import idempotency_key
from plans.runs.submission import RunRefusedError, cancel_run

MOST_RERUNS = 10
MOST_CAUSES = 5
MOST_NAMED = 12
PAGE = 50
COUNT_CAP = 10_000
STATUSES = (*Run.TaskStatus, *UNFINISHED, "poison")
CHOICES = ("status", "runner", "q", "undecided")


@member_page
def plan_run(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    """Show one run; a foreign and an unknown one are both not found."""
    run = find_run(request, run_id)
    context = {**run_context(run, request.GET), "section": "plan_runs"}
    return respond(request, "plan_runs/run", context, context["headline"])


@member_page
def run_results(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    run = find_run(request, run_id)
    answer = JsonResponse(
        results_document(run), json_dumps_params={"indent": 2, "ensure_ascii": False}
    )
    answer["Content-Disposition"] = f'attachment; filename="run-{run.pk}.json"'
    return answer


@member_page
def moved_results(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    """Lead from the address that results had before to the one they have."""
    return redirect("run_results", find_run(request, run_id).pk)


def find_run(request: ConsoleRequest, run_id: UUID) -> Run:
    runs = Run.objects.filter(project=request.project)
    return get_object_or_404(runs.defer("payload"), pk=run_id)


def run_context(run: Run, query: QueryDict) -> Mapping[str, Any]:
    counts = count_steps(run)
    traces = Traces(run)
    show = query.get("show", "") if query.get("show") in SHOWS else ""
    window = read_window(run, show, read_number(query.get("from")) or 0)
    chosen = _choose(run, traces, read_number(query.get("step")))
    path = [traces.all[position] for position in traces.critical]
    took = run.ended_at - run.started_at if run.started_at and run.ended_at else None
    goal = Goal.objects.filter(project_id=run.project_id, correlation_id=run.correlation_id).first()
    return {
        "run": run,
        "goal_url": goal_path(goal) if goal else None,
        "counts": counts,
        "tone": run_tone(run.state, run.task_status, counts),
        "badge": run_badge(run.state, run.task_status),
        "headline": run_headline(run.state, run.task_status, counts, took, run.refused_reason),
        "live": run.state in UNFINISHED,
        "rows": [_row(step, traces) for step in window.steps],
        "window": window,
        "graph": _graph(run, traces, window, counts),
        "causes": traces.causes[:MOST_CAUSES],
        "more_causes": max(len(traces.causes) - MOST_CAUSES, 0),
        # The chain that decided when the run ended, unless it is only one step.
        "critical": {"steps": path[:MOST_NAMED], "more": max(len(path) - MOST_NAMED, 0)}
        if len(path) > 1
        else None,
        "chosen": chosen,
        "undecided": read_undecided(run) if counts.undecided else [],
        "show": show,
        "shows": [
            ("", "all", counts.total),
            ("not_ok", "problems", counts.failed + counts.skipped),
            ("running", "running", counts.running),
            ("undecided", "needs decision", counts.undecided),
        ],
        "meta": json.dumps(run.meta, indent=2, ensure_ascii=False) if run.meta else "",
        "violations": run.contract_violations[:20],
        "reruns": list(run.reruns.order_by("created_at").defer("payload")[:MOST_RERUNS]),
    }


def _row(step: RunStep, traces: Traces) -> Mapping[str, Any]:
    is_critical = step.position in traces.critical_set
    return step_row(step, traces.root_of(step.position), is_critical=is_critical)


def _graph(run: Run, traces: Traces, window: StepWindow, counts: StepCounts) -> list[GraphStep]:
    """Draw the whole plan when it is small, else the steps that are listed."""
    steps = (
        list(run.steps.order_by("position").defer("output"))
        if counts.total <= MOST_STEPS
        else window.steps
    )
    return [
        graph_step(step, traces.roots, traces.critical_set, f"?step={step.position}#step")
        for step in steps
    ]


def _choose(run: Run, traces: Traces, position: int | None) -> Mapping[str, Any] | None:
    """Read the step that was asked for, else the first root cause that failed."""
    if position is None:
        failed = (cause.position for cause in traces.causes if not cause.skipped)
        position = next(failed, None)
    step = run.steps.filter(position=position).first() if position is not None else None
    if step is None:
        return None
    return {
        "row": _row(step, traces),
        "arguments": shown_json(read_arguments(run, step.position), 8_000),
        "output": shown_json(step.output, 8_000),
        "dependencies": list(traces.named(step.dependencies))[:MOST_NAMED],
        "key": idempotency_key(run.pk, str(step.position + 1), step.call_group),
    }


MOST_AT_ONCE = 100


@member_action
def cancel(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    """Ask for the run to end before its next tool call."""
    run = _mine(request, run_id)
    if cancel_run(run.project_id, run.pk):
        note(run.project_id, request.user, "plan_run.cancelled", str(run.pk))
    else:
        messages.info(request, "The plan run had already ended.")
    return redirect("plan_run", run.pk)


@member_action
def rerun(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    run = _mine(request, run_id)
    first = read_number(request.POST.get("from"))
    try:
        with noting(run.project_id, request.user, "plan_run.repeated", str(run.pk)):
            repeated = repeat(run.pk, first, by=request.user.get_username())
    except RunRefusedError as error:
        messages.error(request, f"Re-run refused. {error}")
        return redirect("plan_run", run.pk)
    return redirect("plan_run", repeated.pk)


@member_action
def resolve(request: ConsoleRequest, run_id: UUID) -> HttpResponse:
    """Settle the marked steps by the member's word; the run goes on."""
    run = _mine(request, run_id)
    numbers = (read_number(text) for text in request.POST.getlist("position"))
    chosen = [position for position in numbers if position is not None][:MOST_AT_ONCE]
    verdict = request.POST.get("verdict", "")
    if not chosen or verdict not in Verdict.values:
        messages.error(request, "Select at least one step.")
        return redirect("plan_run", run.pk)
    try:
        resolve_steps(run.pk, chosen, Verdict(verdict), request.user.get_username())
    except RunRefusedError as error:
        messages.error(request, f"No change. {error}")
    else:
        note(run.project_id, request.user, f"plan_run.steps_{verdict}", str(run.pk))
        message = f"{plural(len(chosen), 'step')} decided; the plan run continues."
        messages.success(request, message)
    return redirect("plan_run", run.pk)


def _mine(request: ConsoleRequest, run_id: UUID) -> Run:
    """The run, if it is of the project; a viewer may look, but not act."""
    run = find_run(request, run_id)
    require_actor(request)
    return run


@member_page
def plan_runs(request: ConsoleRequest) -> HttpResponse:
    chosen = request.GET
    matching = _matching(request.project, chosen)
    page = _page(matching.defer("payload", "contract_violations", "on_end_kwargs"), chosen)
    context = {
        **page,
        "rows": [_list_row(run) for run in page["found"]],
        "total": matching.order_by()[: COUNT_CAP + 1].count(),
        "cap": COUNT_CAP,
        "chosen": {name: chosen.get(name, "") for name in CHOICES},
        "narrowed": any(chosen.get(name) for name in CHOICES),
        "statuses": [(status, run_badge(status, None)[1]) for status in STATUSES],
        "runners": Run.Runner.values,
        "live": any(run.state in UNFINISHED for run in page["found"]),
        "section": "plan_runs",
    }
    return respond(request, "plan_runs/list", context, "Plan runs")


def _page(runs: QuerySet[Run], chosen: QueryDict) -> dict[str, Any]:
    """Return `found`, newest first as ids carry the time, and where newer and older ones begin."""
    after, before = read_uuid(chosen.get("after")), read_uuid(chosen.get("before"))
    if after:
        cut = list(runs.filter(pk__gt=after).order_by("pk")[: PAGE + 1])
        page, newer, older = cut[:PAGE][::-1], len(cut) > PAGE, True
    else:
        cut = list((runs.filter(pk__lt=before) if before else runs).order_by("-pk")[: PAGE + 1])
        page, newer, older = cut[:PAGE], before is not None, len(cut) > PAGE
    return {
        "found": page,
        "newer": page[0].pk if page and newer else None,
        "older": page[-1].pk if page and older else None,
    }


def _matching(project: Project, chosen: QueryDict) -> QuerySet[Run]:
    runs = Run.objects.filter(project=project)
    if (status := chosen.get("status")) in list(Run.TaskStatus):
        runs = runs.filter(task_status=status)
    elif status in STATUSES:
        runs = runs.filter(state=status)
    if (runner := chosen.get("runner")) in Run.Runner.values:
        runs = runs.filter(runner=runner)
    if chosen.get("undecided"):
        waiting = RunStep.objects.filter(UNDECIDED, run=OuterRef("pk"))
        runs = runs.filter(Exists(waiting))
    if text := chosen.get("q", "").replace("\0", "").strip()[:200]:
        # No run has no id.
        runs = runs.filter(Q(correlation_id__istartswith=text) | Q(pk=read_uuid(text)))
    return runs


def _list_row(run: Run) -> Mapping[str, Any]:
    stats = (run.meta or {}).get("stats")
    return {
        "run": run,
        "badge": run_badge(run.state, run.task_status),
        "stats": stats if isinstance(stats, dict) else {},
        "took": run.ended_at - run.started_at if run.started_at and run.ended_at else None,
    }

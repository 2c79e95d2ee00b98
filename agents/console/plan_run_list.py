"""The list of plan runs: newest first, by keyset; plans that came without a goal too."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpResponse, QueryDict

from agents.badges import run_badge
from agents.console.keyset import page_by_id, read_id
from agents.console.run_reading import UNDECIDED
from diagnostics.accounts.models import Project
from diagnostics.store.leases import UNFINISHED
from diagnostics.web.access import ConsoleRequest, member_page
from diagnostics.web.pages import respond
from plans.models.run import Run, RunStep

PAGE = 50
COUNT_CAP = 10_000
STATUSES = (*Run.TaskStatus, *UNFINISHED, "poison")
CHOICES = ("status", "runner", "q", "undecided")


@member_page
def plan_runs(request: ConsoleRequest) -> HttpResponse:
    chosen = request.GET
    matching = _matching(request.project, chosen)
    page = page_by_id(
        matching.defer("payload", "contract_violations", "on_end_kwargs"), chosen, PAGE
    )
    context = {
        **page,
        "rows": [_row(run) for run in page["found"]],
        "total": matching.order_by()[: COUNT_CAP + 1].count(),
        "cap": COUNT_CAP,
        "chosen": {name: chosen.get(name, "") for name in CHOICES},
        "narrowed": any(chosen.get(name) for name in CHOICES),
        "statuses": [(one, run_badge(one, None)[1]) for one in STATUSES],
        "runners": Run.Runner.values,
        "live": any(run.state in UNFINISHED for run in page["found"]),
        "section": "plan_runs",
    }
    return respond(request, "plan_runs/list", context, "Plan runs")


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
        runs = runs.filter(Q(correlation_id__istartswith=text) | Q(pk=read_id(text)))
    return runs


def _row(run: Run) -> Mapping[str, Any]:
    stats = (run.meta or {}).get("stats")
    return {
        "run": run,
        "badge": run_badge(run.state, run.task_status),
        "stats": stats if isinstance(stats, dict) else {},
        "took": run.ended_at - run.started_at if run.started_at and run.ended_at else None,
    }

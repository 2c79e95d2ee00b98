"""The list of runs: newest first, by keyset; plans that came without a goal too."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpResponse, QueryDict
from django.views.decorators.http import require_safe

from agents.badges import Badge
from agents.console.headlines import TONES
from agents.console.run_reading import UNDECIDED
from diagnostics.accounts.models import Project
from diagnostics.web.access import ConsoleRequest, member_view
from diagnostics.web.pages import respond
from plans.models.run import Run, RunStep

PAGE = 50
COUNT_CAP = 10_000
LIVE = frozenset({"queued", "running"})
STATUSES = (*Run.TaskStatus, "queued", "running", "poison")
CHOICES = ("status", "runner", "q", "undecided")


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as a line of the list."""

    run: Run
    badge: Badge
    stats: Mapping[str, Any]
    took: timedelta | None


@require_safe
@member_view
def runs(request: ConsoleRequest) -> HttpResponse:
    """Show a page of runs."""
    chosen = request.GET
    matching = _matching(request.project, chosen)
    page = _page(matching, chosen)
    context = {
        **page,
        "rows": [_row(run) for run in page["runs"]],
        "total": matching.order_by()[: COUNT_CAP + 1].count(),
        "cap": COUNT_CAP,
        "chosen": {name: chosen.get(name, "") for name in CHOICES},
        "narrowed": any(chosen.get(name) for name in CHOICES),
        "statuses": STATUSES,
        "runners": Run.Runner.values,
        "live": any(run.state in LIVE for run in page["runs"]),
        "section": "runs",
    }
    return respond(request, "runs/list", context, "Runs")


def _matching(project: Project, chosen: QueryDict) -> QuerySet[Run]:
    found = Run.objects.filter(project=project)
    if (status := chosen.get("status")) in list(Run.TaskStatus):
        found = found.filter(task_status=status)
    elif status in STATUSES:
        found = found.filter(state=status)
    if (runner := chosen.get("runner")) in Run.Runner.values:
        found = found.filter(runner=runner)
    if chosen.get("undecided"):
        waiting = RunStep.objects.filter(UNDECIDED, run=OuterRef("pk"))
        found = found.filter(Exists(waiting))
    if text := chosen.get("q", "").replace("\0", "").strip()[:200]:
        found = found.filter(Q(correlation_id__istartswith=text) | _by_id(text))
    return found


def _by_id(text: str) -> Q:
    run_id = _uuid(text)
    return Q(pk=run_id) if run_id else Q(pk__in=[])


def _page(matching: QuerySet[Run], chosen: QueryDict) -> Mapping[str, Any]:
    """Cut a page before or after an id; ids carry the time, so their order is the time's."""
    light = matching.defer("payload", "contract_violations", "on_end_kwargs")
    if newer_than := _uuid(chosen.get("after")):
        found = list(light.filter(pk__gt=newer_than).order_by("pk")[: PAGE + 1])
        return _window(found[:PAGE][::-1], newer=len(found) > PAGE, older=True)
    older_than = _uuid(chosen.get("before"))
    if older_than:
        light = light.filter(pk__lt=older_than)
    found = list(light.order_by("-pk")[: PAGE + 1])
    return _window(found[:PAGE], newer=older_than is not None, older=len(found) > PAGE)


def _window(shown: list[Run], *, newer: bool, older: bool) -> Mapping[str, Any]:
    return {
        "runs": shown,
        "newer": shown[0].pk if shown and newer else None,
        "older": shown[-1].pk if shown and older else None,
    }


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def _row(run: Run) -> RunRow:
    shown = run.task_status or run.state
    stats = (run.meta or {}).get("stats")
    return RunRow(
        run=run,
        badge=(TONES.get(shown, "quiet"), shown),
        stats=stats if isinstance(stats, dict) else {},
        took=run.ended_at - run.started_at if run.started_at and run.ended_at else None,
    )

"""Deleting what was recorded of a run or a project, at once or as a job of a worker."""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from agents.goals.models import Goal
from agents.purge.models import PurgeOrder
from diagnostics import purge as event_purge
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Project
from diagnostics.clock import DatabaseNow
from diagnostics.store.models import Event
from diagnostics.store.outbox import enqueue
from plans.models.run import Run, WorkingItem

BATCH = 200
AT_WORK = (Goal.Status.QUEUED, Goal.Status.RUNNING, Goal.Status.WAITING_USER)
UNENDED = (Run.State.QUEUED, Run.State.RUNNING)


class StillAtWorkError(Exception):
    """goals or runs have not ended: cancel them first"""


@dataclass(frozen=True, slots=True)
class Purged:
    """How much was deleted."""

    goals: int
    runs: int
    events: int


def purge(project: Project, correlation_id: str | None) -> Purged:
    """Delete what belongs to a correlation id, or with None everything that was recorded.

    Settings, keys, models, tools and fix patterns of the project stay. Raises
    StillAtWorkError.
    """
    mine = _recorded(project, correlation_id)
    goals, runs = Goal.objects.filter(mine), Run.objects.filter(mine)
    if goals.filter(status__in=AT_WORK).exists() or runs.filter(state__in=UNENDED).exists():
        raise StillAtWorkError(StillAtWorkError.__doc__)
    counted = _delete_goals(project, goals), _delete_runs(project, runs)
    if correlation_id is None:
        return Purged(*counted, event_purge.purge_project(project))
    return Purged(*counted, event_purge.purge_correlation(project.pk, correlation_id))


def count(project: Project, correlation_id: str | None) -> Purged:
    """Return how much `purge` would delete now."""
    mine = _recorded(project, correlation_id)
    tables = (Goal, Run, Event)
    return Purged(*(table.objects.filter(mine).count() for table in tables))


def _recorded(project: Project, correlation_id: str | None) -> Q:
    mine = Q(project=project)
    return mine if correlation_id is None else mine & Q(correlation_id=correlation_id)


def _delete_goals(project: Project, goals: QuerySet[Goal]) -> int:
    total = 0
    while ids := list(goals.values_list("pk", flat=True)[:BATCH]):
        _delete_working(project, [f"goal:{pk}" for pk in ids])
        Goal.objects.filter(pk__in=ids).delete()
        total += len(ids)
    return total


def _delete_runs(project: Project, runs: QuerySet[Run]) -> int:
    total = 0
    while ids := list(runs.values_list("pk", flat=True)[:BATCH]):
        _delete_working(project, [f"run:{pk}" for pk in ids])
        Run.objects.filter(pk__in=ids).delete()
        total += len(ids)
    return total


def _delete_working(project: Project, owners: list[str]) -> None:
    WorkingItem.objects.filter(project=project, owner__in=owners).delete()


TASK = "agents.tasks.purge_ordered"
QUEUE = "fold"


def order_purge(project: Project, by: User, correlation_id: str) -> PurgeOrder:
    """Order a purge; without a correlation id, of everything recorded in the project."""
    with transaction.atomic():
        order = PurgeOrder.objects.create(project=project, by=by, correlation_id=correlation_id)
        note(project.pk, by, "purge.ordered", correlation_id or "everything")
        enqueue(TASK, {"order_id": order.pk}, QUEUE, project.pk)
    return order


def orders_of(project: Project) -> QuerySet[PurgeOrder]:
    """Return a project's purges, newest first."""
    found = PurgeOrder.objects.filter(project=project).select_related("by")
    return found.order_by("-at")


def carry_out(order_id: int) -> None:
    """Purge as ordered; safe to repeat: what was interrupted is taken up again."""
    order = PurgeOrder.objects.select_related("project", "by").filter(
        pk=order_id, status=PurgeOrder.Status.RUNNING
    )
    found = order.first()
    if found is None:
        return
    _take_up_again(found)
    try:
        purged = purge(found.project, found.correlation_id or None)
    except StillAtWorkError:
        _finish(found, PurgeOrder.Status.REFUSED)
    else:
        counts = {"goals": purged.goals, "runs": purged.runs, "events": purged.events}
        _finish(found, PurgeOrder.Status.DONE, **counts)


def _take_up_again(order: PurgeOrder) -> None:
    """Leave word for later: a large purge outlasts its task, and workers die."""
    later = timedelta(seconds=settings.TASK_HARD_LIMIT_SECONDS)
    enqueue(TASK, {"order_id": order.pk}, QUEUE, order.project_id, delay=later)


def _finish(order: PurgeOrder, status: str, **counts: int) -> None:
    with transaction.atomic():
        changed = PurgeOrder.objects.filter(pk=order.pk, status=PurgeOrder.Status.RUNNING).update(
            status=status, finished_at=DatabaseNow(), **counts
        )
        if changed:
            told = {"ordered_by": order.by_id, **counts}
            target = order.correlation_id or "everything"
            note(order.project_id, "a worker", f"purge.{status}", target, told)

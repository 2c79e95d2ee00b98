"""Delete the recorded data of a run or a project, at once or as a job of a worker."""

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from agents.goals.models import Goal
from agents.jobs import QUEUE, finish_job, submit_job
from agents.purge.models import PurgeOrder
from diagnostics import purge as event_purge
from diagnostics.accounts.models import Project
from diagnostics.store.leases import UNFINISHED
from diagnostics.store.models import Event
from diagnostics.store.outbox import enqueue
from plans.models.run import Run, WorkingItem

BATCH = 200
AT_WORK = (*UNFINISHED, Goal.Status.WAITING_USER)


class StillAtWorkError(Exception):
    """goals or runs have not ended: cancel them first"""


@dataclass(frozen=True, slots=True)
class Purged:
    """How much was deleted."""

    goals: int
    runs: int
    events: int


def purge(project: Project, correlation_id: str | None) -> Purged:
    """Delete the data of a correlation id, or with None all recorded data.

    Settings, keys, models, tools and fix patterns of the project stay. Raises
    StillAtWorkError.
    """
    condition = _condition(project, correlation_id)
    goals, runs = Goal.objects.filter(condition), Run.objects.filter(condition)
    if goals.filter(status__in=AT_WORK).exists() or runs.filter(state__in=UNFINISHED).exists():
        raise StillAtWorkError(StillAtWorkError.__doc__)
    counted = _delete(project, goals, "goal"), _delete(project, runs, "run")
    if correlation_id is None:
        return Purged(*counted, event_purge.purge_project(project))
    return Purged(*counted, event_purge.purge_correlation(project.pk, correlation_id))


def count(project: Project, correlation_id: str | None) -> Purged:
    """Return how much `purge` would delete now."""
    condition = _condition(project, correlation_id)
    tables = (Goal, Run, Event)
    return Purged(*(table.objects.filter(condition).count() for table in tables))


def _condition(project: Project, correlation_id: str | None) -> Q:
    condition = Q(project=project)
    return condition if correlation_id is None else condition & Q(correlation_id=correlation_id)


def _delete(project: Project, rows: QuerySet[Any], kind: str) -> int:
    total = 0
    while ids := list(rows.values_list("pk", flat=True)[:BATCH]):
        owners = [f"{kind}:{pk}" for pk in ids]
        WorkingItem.objects.filter(project=project, owner__in=owners).delete()
        rows.model.objects.filter(pk__in=ids).delete()
        total += len(ids)
    return total


TASK = "agents.tasks.purge_ordered"


def order_purge(project: Project, by: User, correlation_id: str) -> PurgeOrder:
    """Order a purge; without a correlation id, of everything recorded in the project."""
    job = PurgeOrder(project=project, correlation_id=correlation_id)
    submit_job(job, by, TASK, "purge.ordered", correlation_id or "everything")
    return job


def orders_of(project: Project) -> QuerySet[PurgeOrder]:
    """Return a project's purges, newest first."""
    orders = PurgeOrder.objects.filter(project=project).select_related("by")
    return orders.order_by("-at")


def carry_out(order_id: int) -> None:
    """Purge as ordered; safe to repeat after an interruption."""
    running = PurgeOrder.objects.select_related("project", "by").filter(
        pk=order_id, status=PurgeOrder.Status.RUNNING
    )
    job = running.first()
    if job is None:
        return
    _take_up_again(job)
    try:
        purged = purge(job.project, job.correlation_id or None)
    except StillAtWorkError:
        _finish(job, PurgeOrder.Status.REFUSED)
    else:
        _finish(job, PurgeOrder.Status.DONE, **asdict(purged))


def _take_up_again(job: PurgeOrder) -> None:
    """Enqueue the job again for later: a large purge outlasts its task, and workers die."""
    later = timedelta(seconds=settings.FAILSOFT_TASK_HARD_LIMIT_SECONDS)
    enqueue(TASK, {"order_id": job.pk}, QUEUE, job.project_id, delay=later)


def _finish(job: PurgeOrder, status: str, **counts: int) -> None:
    finish_job(job, status, f"purge.{status}", job.correlation_id or "everything", **counts)

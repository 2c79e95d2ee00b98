"""Delete the recorded data of a run or a project, or a project itself.

At once, or by a worker: what takes long is done in batches, and taken up again.
"""

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from agents.goals.models import Goal
from agents.jobs import QUEUE, finish_job, submit_job
from agents.purge.models import PurgeOrder
from diagnostics import purge as event_purge
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.authentication import KEEP_SECONDS
from diagnostics.accounts.models import ApiKey, Invitation, Membership, Project
from diagnostics.accounts.projects import revoke_key
from diagnostics.store.leases import UNFINISHED
from diagnostics.store.models import Event
from diagnostics.store.outbox import enqueue
from plans.models.run import Run, WorkingItem

logger = structlog.get_logger(__name__)

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
    _refuse_at_work(condition)
    goals, runs = Goal.objects.filter(condition), Run.objects.filter(condition)
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


def _refuse_at_work(condition: Q) -> None:
    goals = Goal.objects.filter(condition, status__in=AT_WORK)
    if goals.exists() or Run.objects.filter(condition, state__in=UNFINISHED).exists():
        raise StillAtWorkError(StillAtWorkError.__doc__)


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
    # Enqueue the job again for later: a large purge outlasts its task, and workers die.
    enqueue(TASK, {"order_id": job.pk}, QUEUE, job.project_id, delay=_task_limit())
    try:
        purged = purge(job.project, job.correlation_id or None)
    except StillAtWorkError:
        _finish(job, PurgeOrder.Status.REFUSED)
    else:
        _finish(job, PurgeOrder.Status.DONE, **asdict(purged))


def _task_limit() -> timedelta:
    return timedelta(seconds=settings.FAILSOFT_TASK_HARD_LIMIT_SECONDS)


def _finish(job: PurgeOrder, status: str, **counts: int) -> None:
    finish_job(job, status, f"purge.{status}", job.correlation_id or "everything", **counts)


DELETE_PROJECT = "agents.tasks.delete_project"


def order_deletion(project: Project, by: User) -> None:
    """Close a project to everybody at once; a worker deletes it. Raises StillAtWorkError.

    Its audit entries stay, and the installation's log says who ordered it.
    """
    _refuse_at_work(Q(project=project))
    with transaction.atomic():
        for key in ApiKey.objects.filter(project=project, revoked_at=None):
            revoke_key(key)
        for rows in (Membership, Invitation):
            rows.objects.filter(project=project).delete()
        for chain in (project.pk, None):
            note(chain, by, "project.deletion_ordered", project.slug, {"project": project.pk})
        # A web process may accept a revoked key until its copy expires.
        _enqueue_deletion(project.pk, timedelta(seconds=KEEP_SECONDS + 1))


def delete_project(project_id: int) -> None:
    """Delete a project and everything in it; safe to repeat until it is gone."""
    project = Project.objects.filter(pk=project_id, memberships=None).first()
    if project is None:
        return
    _enqueue_deletion(project_id, _task_limit())
    try:
        purged = purge(project, None)
    except StillAtWorkError:
        logger.warning("project_still_at_work", project=project_id)
        return
    with transaction.atomic():
        project.delete()
        details = {"project": project_id, **asdict(purged)}
        note(None, "a worker", "project.deleted", project.slug, details)


def _enqueue_deletion(project_id: int, delay: timedelta) -> None:
    """Enqueue the deletion; each execution enqueues the next, in case it is cut short."""
    enqueue(DELETE_PROJECT, {"project_id": project_id}, QUEUE, None, delay=delay)

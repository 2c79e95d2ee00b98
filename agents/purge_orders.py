"""Purges that people order on a page: a row, a worker that carries it out, an audit entry."""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from agents.models import PurgeOrder
from agents.purging import StillAtWorkError, purge
from diagnostics.access.auditing import note
from diagnostics.clock import DatabaseNow
from diagnostics.models import Project
from diagnostics.outbox import enqueue

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
    """Give a project's purges, newest first."""
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

"""Delete the recorded data of a run or a project, or a project itself.

At once, or by a worker: what takes long is done in batches, and taken up again.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Model, Q, QuerySet
from django.db.models.expressions import CombinedExpression

from agents.goals.models import Goal
from agents.goals.submission import MESSAGE_LEASE, cancel_goal
from agents.jobs import QUEUE, PurgeOrder, finish_job, submit_job
from diagnostics import purge as event_purge
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.authentication import KEEP_SECONDS
from diagnostics.accounts.models import ApiKey, Invitation, Membership, Project
from diagnostics.accounts.projects import revoke_key
from diagnostics.clock import DatabaseNow
from diagnostics.store.leases import UNFINISHED, drained_until
from diagnostics.store.models import Event
from diagnostics.store.outbox import enqueue
from plans.checks.workspaces import remove_workspace, workspace_of
from plans.models.check import CompletionCheck
from plans.models.run import Run, WorkingItem

BATCH = 200
AT_WORK = (*UNFINISHED, Goal.Status.WAITING_USER)
# What is counted, as the columns of an order are named.
COUNTED: Mapping[str, type[Model]] = {"goals": Goal, "runs": Run, "events": Event}
# Takes a name of `COUNTED` and the number that a batch has deleted, in the batch's transaction.
NoteBatch = Callable[[str, int], object]


class StillAtWorkError(Exception):
    """goals or runs have not ended: cancel them first"""


def purge(project: Project, correlation_id: str | None, note_batch: NoteBatch) -> None:
    """Delete the data of a correlation id, or with None all recorded data.

    Settings, keys, models, tools and fix patterns of the project stay. Raises
    StillAtWorkError.
    """
    condition = _condition(project, correlation_id)
    _refuse_at_work(condition)
    CompletionCheck.objects.filter(condition).delete()
    _delete(project, Goal.objects.filter(condition), "goal", note_batch)
    _delete(project, Run.objects.filter(condition), "run", note_batch)
    note_events = partial(note_batch, "events")
    if correlation_id is None:
        event_purge.purge_project(project, note_events)
    else:
        event_purge.purge_correlation(project.pk, correlation_id, note_events)


def count(project: Project, correlation_id: str | None) -> dict[str, int]:
    condition = _condition(project, correlation_id)
    rows = {name: table._default_manager.filter(condition) for name, table in COUNTED.items()}
    return {name: matching.count() for name, matching in rows.items()}


def _condition(project: Project, correlation_id: str | None) -> Q:
    condition = Q(project=project)
    return condition if correlation_id is None else condition & Q(correlation_id=correlation_id)


def _refuse_at_work(condition: Q) -> None:
    goals = Goal.objects.filter(condition, status__in=AT_WORK)
    if goals.exists() or Run.objects.filter(condition, state__in=UNFINISHED).exists():
        raise StillAtWorkError(StillAtWorkError.__doc__)


def _delete(project: Project, rows: QuerySet[Any], kind: str, note_batch: NoteBatch) -> None:
    while ids := list(rows.values_list("pk", flat=True)[:BATCH]):
        owners = [f"{kind}:{pk}" for pk in ids]
        for pk in ids if kind == "goal" else ():
            remove_workspace(workspace_of(project.pk, str(pk)))
        with transaction.atomic():
            WorkingItem.objects.filter(project=project, owner__in=owners).delete()
            rows.model.objects.filter(pk__in=ids).delete()
            note_batch(f"{kind}s", len(ids))


TASK = "agents.tasks.purge_ordered"


def order_purge(project: Project, by: User, correlation_id: str) -> PurgeOrder:
    """Order a purge; without a correlation id, of everything recorded in the project."""
    job = PurgeOrder(project=project, correlation_id=correlation_id, retry_at=_after(MESSAGE_LEASE))
    submit_job(job, by, TASK, "purge.ordered", correlation_id or "everything")
    return job


def order_deletion(project: Project, by: User) -> PurgeOrder:
    """Close a project to everybody at once; a worker deletes it. Raises StillAtWorkError.

    Its audit entries stay, and the installation's log says who ordered it.
    """
    _refuse_at_work(Q(project=project))
    # A web process may accept a revoked key until its copy expires.
    delay = timedelta(seconds=KEEP_SECONDS + 1)
    with transaction.atomic():
        for key in ApiKey.objects.filter(project=project, revoked_at=None):
            revoke_key(key, by)
        for rows in (Membership, Invitation):
            rows.objects.filter(project=project).delete()
        for chain in (project.pk, None):
            note(chain, by, "project.deletion_ordered", project.slug, {"project": project.pk})
        job = PurgeOrder.objects.create(
            project=project, by=by, deletes_project=True, retry_at=_after(delay + MESSAGE_LEASE)
        )
        _enqueue(job, delay)
    return job


def orders_of(project: Project) -> QuerySet[PurgeOrder]:
    orders = PurgeOrder.objects.filter(project=project).select_related("by")
    return orders.order_by("-at")


def carry_out(order_id: int) -> None:
    """Purge or delete as ordered; safe to repeat after an interruption."""
    running = PurgeOrder.objects.filter(pk=order_id, status=PurgeOrder.Status.RUNNING)
    # A large purge outlasts its task, and workers die: the order is due again after that.
    limit = timedelta(seconds=settings.FAILSOFT_TASK_HARD_LIMIT_SECONDS)
    running.update(retry_at=_after(limit))
    job = running.select_related("project", "by").first()
    if job is None:
        return
    try:
        purge(job.project, job.correlation_id or None, partial(_count, running))
    except StillAtWorkError:
        if not job.deletes_project:
            _finish(job, PurgeOrder.Status.REFUSED)
        else:
            # Nobody is left who could answer them.
            for goal in Goal.objects.filter(project=job.project, status=Goal.Status.WAITING_USER):
                cancel_goal(goal)
        return
    # With what went before an interruption.
    job.refresh_from_db(fields=COUNTED)
    purged = {name: getattr(job, name) for name in COUNTED}
    if job.deletes_project:
        project = job.project
        details = {"project": project.pk, **purged}
        with transaction.atomic():
            if project.delete()[0]:
                note(None, "a worker", "project.deleted", project.slug, details)
    else:
        _finish(job, PurgeOrder.Status.DONE, **purged)


def _count(orders: QuerySet[PurgeOrder], name: str, number: int) -> None:
    orders.update(**{name: F(name) + number})


def reconcile_purges() -> int:
    """Enqueue again the orders whose worker died or whose message was lost; return how many."""
    due = PurgeOrder.objects.filter(
        status=PurgeOrder.Status.RUNNING, retry_at__lt=drained_until(QUEUE)
    )
    count = 0
    for job in due:
        with transaction.atomic():
            if due.filter(pk=job.pk).update(retry_at=_after(MESSAGE_LEASE)):
                _enqueue(job)
                count += 1
    return count


def _after(time: timedelta) -> CombinedExpression:
    return DatabaseNow() + time


def _enqueue(job: PurgeOrder, delay: timedelta = timedelta(0)) -> None:
    enqueue(TASK, {"order_id": job.pk}, QUEUE, job.project_id, delay=delay)


def _finish(job: PurgeOrder, status: str, **counts: int) -> None:
    finish_job(job, status, f"purge.{status}", job.correlation_id or "everything", **counts)

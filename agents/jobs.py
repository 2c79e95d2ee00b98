"""Jobs: what a person orders and a worker does, each beginning and end in the audit log."""

from typing import Any

from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models.functions import Now

from diagnostics.accounts.audit_log import note
from diagnostics.clock import DatabaseNow
from diagnostics.constraints import person
from diagnostics.store.outbox import enqueue

RUNNING = "running"
QUEUE = "fold"


class Job(models.Model):
    """A job of a project: `running` until a worker says how it ended."""

    project_id: int
    by = person(blank=False)
    at = models.DateTimeField(db_default=Now(), editable=False)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True


def order(job: Job, by: User, task: str, action: str, target: str) -> None:
    """Store a job with its audit entry and the message to the worker that does it."""
    job.by = by
    with transaction.atomic():
        job.save()
        note(job.project_id, by, action, target)
        enqueue(task, {"order_id": job.pk}, QUEUE, job.project_id)


def finish(job: Job, status: str, action: str, target: str, **counts: int) -> None:
    """End a job with what it counted, unless it has ended: one audit entry each."""
    with transaction.atomic():
        rows: models.QuerySet[Any] = type(job)._default_manager.filter(pk=job.pk)
        if rows.filter(status=RUNNING).update(status=status, finished_at=DatabaseNow(), **counts):
            told = {"ordered_by": job.by_id, **counts}
            note(job.project_id, "a worker", action, target, told)

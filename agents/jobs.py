"""Jobs that a user orders and a worker runs; start and end are in the audit log."""

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
    """A job of a project: `running` until a worker has ended it."""

    project_id: int
    by = person(blank=False)
    at = models.DateTimeField(db_default=Now(), editable=False)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True


def submit_job(job: Job, by: User, task: str, action: str, target: str) -> None:
    """Store a job with its audit entry, and enqueue it."""
    job.by = by
    with transaction.atomic():
        job.save()
        note(job.project_id, by, action, target)
        enqueue(task, {"order_id": job.pk}, QUEUE, job.project_id)


def finish_job(job: Job, status: str, action: str, target: str, **counts: int) -> None:
    """End a job with its counts and an audit entry, unless it has ended."""
    with transaction.atomic():
        rows: models.QuerySet[Any] = type(job)._default_manager.filter(pk=job.pk)
        if rows.filter(status=RUNNING).update(status=status, finished_at=DatabaseNow(), **counts):
            details = {"ordered_by": job.by_id, **counts}
            note(job.project_id, "a worker", action, target, details)

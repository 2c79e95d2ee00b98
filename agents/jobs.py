"""Jobs that a user orders and a worker runs; start and end are in the audit log."""

from typing import Any

from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Now

from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Project
from diagnostics.clock import DatabaseNow
from diagnostics.constraints import index, known, person, unique
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


class DemoOrder(Job):
    """Load the demo data into a project, or remove it."""

    class Verb(models.TextChoices):
        LOAD = "load"
        REMOVE = "remove"

    class Status(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    project = models.ForeignKey(Project, models.CASCADE, related_name="demo_orders", db_index=False)
    verb = models.CharField(max_length=8, choices=Verb)
    status = models.CharField(
        max_length=8, choices=Status, default=Status.RUNNING, db_default="running"
    )
    events = models.BigIntegerField(default=0)
    goals = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            known("agents_demoorder_verb_known", "verb", "load remove"),
            known("agents_demoorder_status_known", "status", "running done failed"),
            # Two loads at once would write the story twice.
            unique("agents_demoorder_one_at_work", "project", Q(status="running")),
        ]
        indexes = [
            # Read by the page of the demo data, newest first.
            index("agents_demoorder_recent", "project -at")
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.project_id}"


class PurgeOrder(Job):
    """A purge of one correlation id, with an empty one of all recorded data, or of the project."""

    class Status(models.TextChoices):
        """Queued or running, done, or refused because a goal or run had not ended."""

        RUNNING = "running"
        DONE = "done"
        REFUSED = "refused"

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="purge_orders", db_index=False
    )
    correlation_id = models.CharField(max_length=200, blank=True, default="")
    deletes_project = models.BooleanField(default=False, db_default=False)
    # A worker has taken the order up by then, or its message is lost.
    retry_at = models.DateTimeField(db_default=Now(), editable=False)
    status = models.CharField(
        max_length=8, choices=Status, default=Status.RUNNING, db_default="running"
    )
    goals = models.BigIntegerField(default=0)
    runs = models.BigIntegerField(default=0)
    events = models.BigIntegerField(default=0)

    class Meta:
        constraints = [known("agents_purgeorder_status_known", "status", "running done refused")]
        indexes = [
            # Read by the purge page, newest first.
            index("agents_purgeorder_recent", "project -at")
        ]

    def __str__(self) -> str:
        return f"{self.project_id} {self.correlation_id or 'everything'}"

"""Orders to purge: a worker deletes batch by batch and stores the counts."""

from django.db import models
from django.db.models.functions import Now

from agents.jobs import Job
from diagnostics.accounts.models import Project
from diagnostics.constraints import index, known


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

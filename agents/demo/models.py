"""Orders to load or remove the demo data."""

from django.db import models
from django.db.models import Q

from agents.jobs import Job
from diagnostics.accounts.models import Project
from diagnostics.constraints import index, known, unique


class DemoOrder(Job):
    """Load the demo data into a project, or remove it."""

    class Verb(models.TextChoices):
        LOAD = "load"
        REMOVE = "remove"

    class Status(models.TextChoices):
        """Queued or running, done, or failed."""

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

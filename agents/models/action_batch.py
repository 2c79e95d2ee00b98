"""What came of the actions of one goal: applied, failed in either layer, undone (s4)."""

from django.db import models
from django.db.models.functions import Now

from agents.models.goal import Goal
from diagnostics.models import Project


class ActionBatch(models.Model):
    """The actions of a goal, stored in the transaction that applied them: they are applied once.

    All text is redacted. What an undo needs lies in the working store under `goal:<id>` (X-17).
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    goal = models.OneToOneField(Goal, models.CASCADE, related_name="action_batch")
    toolset = models.CharField(max_length=64)
    # Flat objects, one for each entry that was applied.
    applied = models.JSONField(default=list, blank=True)
    # Calls that could not be decoded, and entries that could not be applied (S4-19).
    parse_failures = models.JSONField(default=list, blank=True)
    execution_failures = models.JSONField(default=list, blank=True)
    # In entries: a call that failed counts all it had (S4-45).
    parse_failed = models.PositiveIntegerField(default=0)
    execution_failed = models.PositiveIntegerField(default=0)
    summary = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    undone_at = models.DateTimeField(null=True, blank=True)
    # Entries that an undo left as they are, because they were changed again since.
    kept = models.JSONField(default=list, blank=True)

    class Meta:
        verbose_name_plural = "action batches"

    def __str__(self) -> str:
        return f"{self.toolset} {self.summary}"

"""What people say of verdicts: right or wrong."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from diagnostics.models.project import Project


class VerdictMark(models.Model):
    """One judgement of one verdict; the verdict is frozen as it was shown."""

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="verdict_marks", db_index=False
    )
    cause = models.TextField()
    cause_value = models.TextField(blank=True, default="")
    since = models.DateTimeField()
    is_right = models.BooleanField()
    # As GET /api/v1/verdict told it when it was marked.
    verdict = models.JSONField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        related_name="+",
        null=True,
        blank=True,
    )
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            # A degradation has one mark: the latest word counts. Read by every verdict.
            models.UniqueConstraint(
                fields=["project", "cause", "cause_value", "since"],
                name="diagnostics_verdictmark_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cause} {self.cause_value}".strip()

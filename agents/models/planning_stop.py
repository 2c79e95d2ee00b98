"""Planning that somebody has stopped: goals wait in the queue until it is resumed."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from diagnostics.models import Project
from diagnostics.models.redacted import RedactedCharField


class PlanningStop(models.Model):
    """While the row is there nobody claims a goal of the project; without one: of any."""

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="+", null=True, db_index=False
    )
    reason = RedactedCharField(max_length=200, blank=True, default="")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, related_name="+", null=True)
    at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # Read at every claim; null is the whole installation, and it is one too.
            models.UniqueConstraint(
                fields=["project"],
                nulls_distinct=False,
                name="agents_planningstop_once",
            ),
        ]

    def __str__(self) -> str:
        return f"stopped since {self.at}"

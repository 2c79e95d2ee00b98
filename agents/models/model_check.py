"""Trying a model: one short call by a worker, and what came of it by kind of fault."""

from django.db import models
from django.db.models.functions import Now

from agents.models.provider import LanguageModel
from diagnostics.models import Project


class ModelCheck(models.Model):
    """The latest try of a model; `fault` is empty when it answered."""

    class Status(models.TextChoices):
        """A worker has not answered yet, or has."""

        ASKED = "asked"
        DONE = "done"

    language_model = models.OneToOneField(
        LanguageModel, models.CASCADE, primary_key=True, related_name="check_row"
    )
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    status = models.CharField(
        max_length=8, choices=Status, default=Status.ASKED, db_default="asked"
    )
    asked_at = models.DateTimeField(db_default=Now())
    done_at = models.DateTimeField(null=True)
    latency_ms = models.PositiveIntegerField(null=True)
    fault = models.CharField(max_length=32, blank=True, default="")
    said = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=["asked", "done"]),
                name="agents_modelcheck_status_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.language_model_id} {self.status} {self.fault}"

"""Silences: what is watched and not told."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.constraints import check, index, person
from diagnostics.redaction.fields import RedactedTextField


class Silence(models.Model):
    """Suppresses notifications in its scope, never evaluation."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="silences")
    # Of this rule only; null: of all.
    rule = models.ForeignKey(
        AlertRule, models.CASCADE, related_name="silences", null=True, blank=True
    )
    # A query string on environment, node, provider, model, kind; empty: everything.
    filter = models.TextField(blank=True, default="")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = RedactedTextField(blank=True, default="")
    created_by = person()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [check("diagnostics_silence_ends", Q(ends_at__gte=F("starts_at")))]
        indexes = [
            # Read by the evaluator and the list of silences.
            index("diagnostics_silence_now", "project ends_at")
        ]

    def __str__(self) -> str:
        return f"{self.filter or 'everything'} until {self.ends_at:%Y-%m-%d %H:%M}"

"""Silences and maintenance windows: what is watched and not told."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.alerting.silences import Repeats
from diagnostics.constraints import check, index, known, person
from diagnostics.redaction.fields import RedactedCharField, RedactedTextField
from diagnostics.store.choices import choices_of


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


class MaintenanceWindow(models.Model):
    """A planned silence, optionally repeated every day or week."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="maintenance_windows")
    name = RedactedCharField(max_length=200)
    filter = models.TextField(blank=True, default="")
    # The first one; later ones begin at the same local time of `zone`.
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    repeats = models.CharField(max_length=8, choices=choices_of(Repeats), default=Repeats.ONCE)
    zone = models.CharField(max_length=64, default="UTC")
    is_enabled = models.BooleanField(default=True)
    created_by = person()

    class Meta:
        constraints = [
            check("diagnostics_maintenancewindow_ends", Q(ends_at__gt=F("starts_at"))),
            known("diagnostics_maintenancewindow_repeats_known", "repeats", Repeats),
        ]

    def __str__(self) -> str:
        return self.name

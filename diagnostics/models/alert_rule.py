"""Alert rules: what is asked of every slice of some calls.

The rules of it are those of `diagnostics.core.alerting`.
"""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from diagnostics.core.alerting.parameters import ALLOWED
from diagnostics.core.alerting.signals import Signal
from diagnostics.core.alerting.states import NoData
from diagnostics.core.choices import choices_of, values_of
from diagnostics.models.project import Project
from diagnostics.models.redacted import RedactedCharField

LONGEST_SECONDS = 7 * 86_400


class Severity(models.TextChoices):
    """How urgent it is, the least first."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class AlertRule(models.Model):
    """What is asked of every slice of some calls, and what is to happen."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="alert_rules")
    name = RedactedCharField(max_length=200)
    # A query string, as in the address of a page; empty: all calls.
    filter = models.TextField(blank=True, default="")
    # Of environment, node, provider, model: each combination is a slice of its own.
    group_by = ArrayField(models.CharField(max_length=16), default=list, blank=True)
    signal = models.CharField(max_length=32, choices=choices_of(Signal))
    detector = models.CharField(max_length=16, choices=choices_of(ALLOWED))
    # Checked by `diagnostics.core.alerting.parameters` before it is saved.
    parameters = models.JSONField(default=dict, blank=True)
    severity = models.CharField(max_length=16, choices=Severity, default=Severity.WARNING)
    # It must hold for so long before it fires, and be over for so long before it clears.
    for_seconds = models.PositiveIntegerField(default=0)
    clear_seconds = models.PositiveIntegerField(default=0)
    no_data = models.CharField(max_length=8, choices=choices_of(NoData), default=NoData.KEEP)
    no_data_seconds = models.PositiveIntegerField(default=6 * 3600)
    # It does not clear by itself: somebody has to resolve it.
    is_latching = models.BooleanField(default=False)
    # Ids of channels; empty: those of the project.
    routing = models.JSONField(default=list, blank=True)
    # Told again so often while nobody has acknowledged; null: never.
    renotify_seconds = models.PositiveIntegerField(null=True, blank=True)
    # Unacknowledged for so long, it goes to these channels too.
    escalate_seconds = models.PositiveIntegerField(null=True, blank=True)
    escalation = models.JSONField(default=list, blank=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        related_name="+",
        null=True,
        blank=True,
    )
    is_enabled = models.BooleanField(default=True)
    # Which of the rules out of the box it is; null for all others.
    standard = models.CharField(max_length=32, null=True, blank=True)
    # Grows with every change of what is judged; kept with each evaluation.
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now())
    # A rule that was deleted: its incidents and evaluations still name it.
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "diagnostics_alertrule"
        constraints = [
            # Also read by the evaluator: the rules of a project.
            models.UniqueConstraint(
                fields=["project", "name"],
                condition=models.Q(archived_at__isnull=True),
                name="diagnostics_alertrule_name_once",
            ),
            models.UniqueConstraint(
                fields=["project", "standard"],
                condition=models.Q(standard__isnull=False),
                name="diagnostics_alertrule_standard_once",
            ),
            models.CheckConstraint(
                condition=models.Q(signal__in=values_of(Signal)),
                name="diagnostics_alertrule_signal_known",
            ),
            models.CheckConstraint(
                condition=models.Q(detector__in=values_of(ALLOWED)),
                name="diagnostics_alertrule_detector_known",
            ),
            models.CheckConstraint(
                condition=models.Q(severity__in=["info", "warning", "critical"]),
                name="diagnostics_alertrule_severity_known",
            ),
            models.CheckConstraint(
                condition=models.Q(no_data__in=values_of(NoData)),
                name="diagnostics_alertrule_no_data_known",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    group_by__contained_by=["environment", "node", "provider", "model"]
                ),
                name="diagnostics_alertrule_group_by_known",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    for_seconds__lte=LONGEST_SECONDS, clear_seconds__lte=LONGEST_SECONDS
                ),
                name="diagnostics_alertrule_waits_bounded",
            ),
        ]

    def __str__(self) -> str:
        return self.name

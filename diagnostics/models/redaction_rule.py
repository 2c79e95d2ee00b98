"""Redaction rules of a project's own, and the renewed redaction of what is stored."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from diagnostics.models.redacted import RedactedCharField


class RedactionRule(models.Model):
    """A pattern under RE2 that is masked as `[REDACTED:kind]` in one project."""

    project = models.ForeignKey(
        "diagnostics.Project", models.CASCADE, related_name="redaction_rules", db_index=False
    )
    name = RedactedCharField(max_length=80)
    pattern = models.CharField(max_length=500)
    kind = models.CharField(max_length=40)
    enabled = models.BooleanField(default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, related_name="+", null=True
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # Read by every process that records events of the project.
            models.UniqueConstraint(
                fields=["project", "name"], name="diagnostics_redactionrule_named_once"
            ),
            models.CheckConstraint(
                condition=models.Q(kind__regex=r"^[a-z0-9_-]{1,40}$"),
                name="diagnostics_redactionrule_kind_fits_marker",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Rescrub(models.Model):
    """Redacting again what a project has stored: where it stands, so that it can go on.

    `stage` counts the sources done, `cursor` is the last key of the source at work; both
    change in the transaction that changes the rows.
    """

    class Status(models.TextChoices):
        """Waiting or at work, ended by itself, or ended by a fault."""

        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    project = models.ForeignKey(
        "diagnostics.Project", models.CASCADE, related_name="rescrubs", db_index=False
    )
    status = models.CharField(
        max_length=16, choices=Status, default=Status.RUNNING, db_default="running"
    )
    stage = models.PositiveIntegerField(default=0)
    cursor = models.JSONField(default=list)
    seen_rows = models.BigIntegerField(default=0)
    changed_rows = models.BigIntegerField(default=0)
    starts = models.PositiveIntegerField(default=0)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, related_name="+", null=True
    )
    requested_at = models.DateTimeField(db_default=Now(), editable=False)
    moved_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=["running", "done", "failed"]),
                name="diagnostics_rescrub_status_known",
            ),
            # A second one waits until the first has ended: it starts from the beginning.
            models.UniqueConstraint(
                fields=["project"],
                condition=models.Q(status="running"),
                name="diagnostics_rescrub_one_at_a_time",
            ),
        ]
        indexes = [
            # Read by the settings page, newest first.
            models.Index(fields=["project", "-requested_at"], name="diagnostics_rescrub_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.project_id} {self.status}"

"""Where notifications go: addresses, a webhook, or a chat or paging service."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from diagnostics.models.alert_rule import Severity
from diagnostics.models.project import Project
from diagnostics.models.redacted import RedactedCharField


class Channel(models.Model):
    """One way to reach people, and when it may be used.

    What is secret of it (the address of a webhook or service, the secrets that sign) is
    `sealed` with the working key, or only referred to by `credential`.
    """

    class Kind(models.TextChoices):
        """How it is reached."""

        EMAIL = "email", "e-mail"
        WEBHOOK = "webhook", "signed webhook"
        CHAT = "chat", "chat or paging service"

    project = models.ForeignKey(Project, models.CASCADE, related_name="channels", db_index=False)
    name = RedactedCharField(max_length=80)
    # What is sealed is bound to it: it stays when the name changes.
    uid = models.UUIDField(default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=16, choices=Kind)
    # What a page may show: mail addresses, or a scheme and host.
    shown = models.CharField(max_length=1000)
    # `env:NAME` or `file:/path` of the address; empty when it is sealed or shown.
    credential = models.CharField(max_length=500, blank=True, default="")
    sealed = models.BinaryField(null=True, blank=True)
    # The secret before is signed with as well for a day after this.
    rotated_at = models.DateTimeField(null=True, blank=True)
    min_severity = models.CharField(max_length=16, choices=Severity, default=Severity.WARNING)
    quiet_from = models.TimeField(null=True, blank=True)
    quiet_to = models.TimeField(null=True, blank=True)
    zone = models.CharField(max_length=64, default="UTC")
    # Beyond so many in an hour, the rest is told in a digest.
    digest_above = models.PositiveSmallIntegerField(default=10)
    # Null: an incident that stays open is told once.
    renotify_minutes = models.PositiveIntegerField(null=True, blank=True)
    escalate_to = models.ForeignKey(
        "self", models.SET_NULL, related_name="+", null=True, blank=True
    )
    escalate_after_minutes = models.PositiveIntegerField(null=True, blank=True)
    # Whether it is tried once a day, to see that it works (a canary).
    has_canary = models.BooleanField(default=False)
    enabled = models.BooleanField(default=True)
    last_sent_at = models.DateTimeField(null=True, blank=True)
    # Since when nothing gets through; null while it works.
    failing_since = models.DateTimeField(null=True, blank=True)
    # Whether it failed because nobody answered at all: then a probe may wake it.
    is_unreachable = models.BooleanField(default=False)
    # When it was last tried while it fails, by a probe or a notification.
    probed_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True, default="")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, related_name="+", null=True
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # Read by whatever names the channels of a project.
            models.UniqueConstraint(
                fields=["project", "name"], name="diagnostics_channel_named_once"
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=["email", "webhook", "chat"]),
                name="diagnostics_channel_kind_known",
            ),
            models.CheckConstraint(
                condition=models.Q(min_severity__in=["info", "warning", "critical"]),
                name="diagnostics_channel_severity_known",
            ),
            models.CheckConstraint(
                condition=models.Q(quiet_from__isnull=True, quiet_to__isnull=True)
                | models.Q(quiet_from__isnull=False, quiet_to__isnull=False),
                name="diagnostics_channel_quiet_has_both_ends",
            ),
            models.CheckConstraint(
                condition=models.Q(credential="")
                | models.Q(credential__startswith="env:")
                | models.Q(credential__startswith="file:"),
                name="diagnostics_channel_credential_is_a_reference",
            ),
        ]

    def __str__(self) -> str:
        return self.name

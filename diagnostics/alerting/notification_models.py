"""Rows of channels and of what each was sent."""

import uuid
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_models import Incident, Transition
from diagnostics.alerting.states import Severity
from diagnostics.constraints import NamedRow, check, choices_of, index, known, person, unique
from diagnostics.figures import Tone
from diagnostics.redaction.fields import RedactedCharField


class ChannelKind(models.TextChoices):
    EMAIL = "email", "email"
    WEBHOOK = "webhook", "signed webhook"
    CHAT = "chat", "chat or paging service"


class Channel(NamedRow):
    """A way to reach people, with its schedule and limits.

    Its secrets (the address of a webhook or service, the signing secrets) are
    `sealed` with the working key, or referenced by `credential`.
    """

    Kind = ChannelKind

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
    min_severity = models.CharField(
        max_length=16, choices=choices_of(Severity), default=Severity.WARNING
    )
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
    created_by = person(blank=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # Read by whatever names the channels of a project.
            unique("diagnostics_channel_named_once", "project name"),
            known("diagnostics_channel_kind_known", "kind", ChannelKind),
            known("diagnostics_channel_severity_known", "min_severity", Severity),
            check(
                "diagnostics_channel_quiet_has_both_ends",
                Q(quiet_from__isnull=True, quiet_to__isnull=True)
                | Q(quiet_from__isnull=False, quiet_to__isnull=False),
            ),
            check(
                "diagnostics_channel_credential_is_a_reference",
                Q(credential="")
                | Q(credential__startswith="env:")
                | Q(credential__startswith="file:"),
            ),
        ]

    @property
    def badge(self) -> tuple[Tone, str]:
        if not self.enabled:
            return "quiet", "off"
        if self.failing_since is not None:
            return "bad", "fails"
        if self.last_error:
            return "warn", "refused in part"
        return ("good", "works") if self.last_sent_at else ("quiet", "never sent")

    def is_in_quiet_hours(self, at: datetime) -> bool:
        """Whether a moment lies in its quiet hours, without their end; some cross midnight."""
        if self.quiet_from is None or self.quiet_to is None:
            return False
        local = at.astimezone(ZoneInfo(self.zone)).time()
        if self.quiet_from <= self.quiet_to:
            return self.quiet_from <= local < self.quiet_to
        return local >= self.quiet_from or local < self.quiet_to


class NotificationReason(models.TextChoices):
    FIRED = "fired"
    WORSENED = "worsened"
    RECOVERED = "recovered"
    REMINDER = "reminder"
    ESCALATED = "escalated"
    DIGEST = "digest"
    TEST = "test"
    CANARY = "canary"


class NotificationState(models.TextChoices):
    QUEUED = "queued"
    SENT = "sent"
    # Given up after the last try.
    FAILED = "failed"
    # Kept back; `why` says what by.
    SUPPRESSED = "suppressed"
    # Told in the digest that `digest` names.
    DIGESTED = "digested"


class Notification(NamedRow):
    """A message to a channel: recorded exactly once, delivered at least once.

    `key` is sent with every delivery (Message-ID, webhook-id), so that a receiver
    can deduplicate.
    """

    named = "{0.reason} to {0.channel_id}: {0.state}"
    Reason = NotificationReason

    State = NotificationState

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="notifications", db_index=False
    )
    channel = models.ForeignKey(
        Channel, models.CASCADE, related_name="notifications", db_index=False
    )
    incident = models.ForeignKey(
        Incident, models.CASCADE, related_name="notifications", null=True, blank=True
    )
    transition = models.ForeignKey(
        Transition, models.CASCADE, related_name="notifications", null=True, blank=True
    )
    reason = models.CharField(max_length=16, choices=Reason)
    # Of reminders: the first, the second.
    round = models.PositiveSmallIntegerField(default=0)
    severity = models.CharField(max_length=16)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    why = models.TextField(blank=True, default="")
    # What is told, redacted, as it was known when the row was written.
    facts = models.JSONField(default=dict)
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    created_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField()
    tries = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    # Grows with every claim: what a sender that lost its lease records is ignored.
    fencing = models.PositiveIntegerField(default=0)
    # Of a mail to several addresses: when it was accepted for one of them last.
    sent_at = models.DateTimeField(null=True, blank=True)
    # What the mail server answered for each address, until all of them have the mail.
    receipts = models.JSONField(default=dict)
    # What the receiver said, and what went wrong; redacted and cut.
    answer = models.TextField(blank=True, default="")
    last_error = models.TextField(blank=True, default="")
    digest = models.ForeignKey(
        "self", models.SET_NULL, related_name="digested", null=True, blank=True
    )
    # When somebody looked at the failure: until then every page tells of it.
    seen_at = models.DateTimeField(null=True, blank=True)
    # When its acknowledge link was used: it works once.
    link_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            # Of one transition a channel is told once, whoever writes it how often.
            unique("diagnostics_notification_once", "incident transition channel reason round"),
            known("diagnostics_notification_reason_known", "reason", NotificationReason),
            known("diagnostics_notification_state_known", "state", NotificationState),
            check(
                "diagnostics_notification_sent_has_time",
                ~Q(state="sent") | Q(sent_at__isnull=False),
            ),
            # Read by whoever adds to a digest: one is collected at a time.
            unique(
                "diagnostics_notification_one_digest",
                "channel",
                Q(reason="digest", state="queued", tries=0),
            ),
        ]
        indexes = [
            # Read by the sender: what is due, oldest first.
            index("diagnostics_notification_due", "next_attempt_at id", Q(state="queued")),
            # Read by the delivery log of a channel, and by the count of the last hour.
            index("diagnostics_notification_log", "channel -created_at"),
            # Read by the banner of every page: failures nobody has looked at.
            index("diagnostics_notif_failed", "project", Q(state="failed", seen_at__isnull=True)),
        ]

"""What one channel is told of one thing: a row first, sent from it, kept as the record."""

import uuid

from django.db import models

from diagnostics.models.channel import Channel
from diagnostics.models.incident import Incident, Transition
from diagnostics.models.project import Project


class Notification(models.Model):
    """One message to one channel: recorded exactly once, delivered at least once.

    `key` goes with it each time it is sent (Message-ID, webhook-id), so that a receiver
    can tell that it is the same one.
    """

    class Reason(models.TextChoices):
        """Why it is sent."""

        FIRED = "fired"
        WORSENED = "worsened"
        RECOVERED = "recovered"
        REMINDER = "reminder"
        ESCALATED = "escalated"
        DIGEST = "digest"
        TEST = "test"
        CANARY = "canary"

    class State(models.TextChoices):
        """What became of it."""

        QUEUED = "queued"
        SENT = "sent"
        # Given up after the last try.
        FAILED = "failed"
        # Kept back; `why` says what by.
        SUPPRESSED = "suppressed"
        # Told in the digest that `digest` names.
        DIGESTED = "digested"

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
    sent_at = models.DateTimeField(null=True, blank=True)
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
            models.UniqueConstraint(
                fields=["incident", "transition", "channel", "reason", "round"],
                name="diagnostics_notification_once",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    reason__in=[
                        "fired",
                        "worsened",
                        "recovered",
                        "reminder",
                        "escalated",
                        "digest",
                        "test",
                        "canary",
                    ]
                ),
                name="diagnostics_notification_reason_known",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    state__in=["queued", "sent", "failed", "suppressed", "digested"]
                ),
                name="diagnostics_notification_state_known",
            ),
            models.CheckConstraint(
                condition=~models.Q(state="sent") | models.Q(sent_at__isnull=False),
                name="diagnostics_notification_sent_has_time",
            ),
            # Read by whoever adds to a digest: one is collected at a time.
            models.UniqueConstraint(
                fields=["channel"],
                condition=models.Q(reason="digest", state="queued", tries=0),
                name="diagnostics_notification_one_digest",
            ),
        ]
        indexes = [
            # Read by the sender: what is due, oldest first.
            models.Index(
                fields=["next_attempt_at", "id"],
                condition=models.Q(state="queued"),
                name="diagnostics_notification_due",
            ),
            # Read by the delivery log of a channel, and by the count of the last hour.
            models.Index(fields=["channel", "-created_at"], name="diagnostics_notification_log"),
            # Read by the banner of every page: failures nobody has looked at.
            models.Index(
                fields=["project"],
                condition=models.Q(state="failed", seen_at__isnull=True),
                name="diagnostics_notif_failed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reason} to {self.channel_id}: {self.state}"

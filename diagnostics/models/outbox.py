"""What must be sent to the broker, written in the transaction that decided it (C9)."""

from django.db import models
from django.db.models.functions import Now


class OutboxMessage(models.Model):
    """One task to enqueue; the row is the truth, the message a hint."""

    project = models.ForeignKey(
        "diagnostics.Project", models.CASCADE, related_name="+", null=True, blank=True
    )
    task = models.CharField(max_length=200)
    queue = models.CharField(max_length=32)
    kwargs = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    available_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True, default="")

    class Meta:
        indexes = [
            # Read by the relay, which takes the oldest due message first.
            models.Index(
                fields=["available_at", "id"],
                condition=models.Q(sent_at__isnull=True),
                name="diagnostics_outbox_due",
            ),
            # Read by the purge of messages that were sent.
            models.Index(
                fields=["sent_at"],
                condition=models.Q(sent_at__isnull=False),
                name="diagnostics_outbox_sent",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task} #{self.pk}"

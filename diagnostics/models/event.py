"""Events as stored: a narrow row, a payload where there is one, an identity for 8 days.

`Event` and `EventPayload` are partitioned by day on `occurred_at`; Django has no words
for that, so plain SQL in a migration makes their tables and the models are unmanaged
(X-16).
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from diagnostics.core.events import EventKind, event_name


class Event(models.Model):
    """What every page counts: about 165 bytes, no text a model wrote."""

    pk = models.CompositePrimaryKey("project", "event_id", "occurred_at")
    project = models.ForeignKey("diagnostics.Project", models.DO_NOTHING, related_name="+")
    event_id = models.UUIDField()
    occurred_at = models.DateTimeField()
    received_at = models.DateTimeField()
    node = models.TextField()
    kind = models.TextField()
    correlation_id = models.TextField()
    cycle = models.IntegerField()
    attempt = models.IntegerField(null=True)
    attempts = models.IntegerField(null=True)
    provider = models.TextField(null=True)
    model = models.TextField(null=True)
    environment = models.TextField(null=True)
    source = models.TextField(null=True)
    release = models.TextField(null=True)
    schema = models.TextField(null=True)
    schema_version = models.TextField(null=True)
    prompt_version = models.TextField(null=True)
    parse_error_type = models.TextField(null=True)
    reason = models.TextField(null=True)
    status = models.TextField(null=True)
    finish_reason = models.TextField(null=True)
    output_mode = models.TextField(null=True)
    latency_ms = models.IntegerField(null=True)
    input_tokens = models.IntegerField(null=True)
    output_tokens = models.IntegerField(null=True)
    # `late` or `future` when the time was implausible on arrival: moves no alert.
    time_mark = models.TextField(null=True)
    # Why a call gave no answer; and whether the prompt of an attempt was simplified.
    call_error_type = models.TextField(null=True)
    is_simplified = models.BooleanField(null=True)

    class Meta:
        managed = False
        db_table = "diagnostics_event"

    def __str__(self) -> str:
        return f"{self.name} {self.correlation_id}"

    @property
    def name(self) -> str:
        """The documented name, `graph.<node>.<kind>` (S0-30, S0-39)."""
        return event_name(self.node, EventKind(self.kind))


class EventPayload(models.Model):
    """The redacted detail of a failure, or of an attempt read leniently (X-12)."""

    pk = models.CompositePrimaryKey("project", "event_id", "occurred_at")
    project = models.ForeignKey("diagnostics.Project", models.DO_NOTHING, related_name="+")
    event_id = models.UUIDField()
    occurred_at = models.DateTimeField()
    raw_output_preview = models.TextField(null=True)
    validation_errors = models.JSONField()
    repairs = models.JSONField()
    coerced = models.JSONField()
    attributes = models.JSONField()
    original_error_type = models.TextField(null=True)
    tool = models.TextField(null=True)
    temperature = models.FloatField(null=True)
    max_output_tokens = models.IntegerField(null=True)
    redacted_kinds = ArrayField(models.TextField())
    # The preview was not kept: the project sent more than its spike bound allows.
    sampled_out = models.BooleanField(db_default=False)
    # Of the kind of failure (diagnostics.core.fingerprints); null where it is none.
    fingerprint = models.UUIDField(null=True)

    class Meta:
        managed = False
        db_table = "diagnostics_event_payload"

    def __str__(self) -> str:
        return str(self.event_id)


class EventIdentity(models.Model):
    """Decides duplicate or conflict when an event id is seen again (X-16)."""

    pk = models.CompositePrimaryKey("project", "event_id")
    project = models.ForeignKey(
        "diagnostics.Project", models.CASCADE, related_name="+", db_index=False
    )
    event_id = models.UUIDField()
    occurred_at = models.DateTimeField()
    content_hash = models.BinaryField(max_length=32)
    received_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "event identities"
        indexes = [
            # Read by the daily purge of identities older than 8 days.
            models.Index(fields=["received_at"], name="diagnostics_identity_age"),
        ]

    def __str__(self) -> str:
        return str(self.event_id)

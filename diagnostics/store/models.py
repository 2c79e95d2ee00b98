"""Rows of events, rollups, outcomes, the outbox and heartbeats."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeVar
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from diagnostics.constraints import NamedRow, ProjectRow, PurgedRow, index, unique
from diagnostics.store.windows import LATE, WIDTHS, Grain, TimeMark, floor
from failsoft.events import EventKind, event_name


class EventColumns(NamedRow):
    """What both models of an event have; `Event` has every column."""

    project = models.ForeignKey("diagnostics.Project", models.DO_NOTHING, related_name="+")
    occurred_at = models.DateTimeField()
    received_at = models.DateTimeField()
    node = models.TextField()
    kind = models.TextField()
    correlation_id = models.TextField()
    attempt = models.IntegerField(null=True)
    provider = models.TextField(null=True)
    model = models.TextField(null=True)
    environment = models.TextField(null=True)
    source = models.TextField(null=True)
    parse_error_type = models.TextField(null=True)
    # Why a call gave no answer.
    call_error_type = models.TextField(null=True)
    latency_ms = models.IntegerField(null=True)
    input_tokens = models.IntegerField(null=True)
    output_tokens = models.IntegerField(null=True)

    class Meta:
        abstract = True


class Event(EventColumns):
    """An event: about 165 bytes, without model output."""

    named = "{0.name} {0.correlation_id}"
    pk = models.CompositePrimaryKey("project", "event_id", "occurred_at")
    event_id = models.UUIDField()
    cycle = models.IntegerField()
    attempts = models.IntegerField(null=True)
    release = models.TextField(null=True)
    schema = models.TextField(null=True)
    schema_version = models.TextField(null=True)
    prompt_version = models.TextField(null=True)
    reason = models.TextField(null=True)
    status = models.TextField(null=True)
    finish_reason = models.TextField(null=True)
    output_mode = models.TextField(null=True)
    # `late` if more than 30 days old on arrival: such events count in no minute.
    time_mark = models.TextField(null=True)
    # The time as sent, if it was ahead of this clock; `occurred_at` is when the event arrived.
    claimed_at = models.DateTimeField(null=True)
    # Whether the prompt of an attempt was simplified.
    is_simplified = models.BooleanField(null=True)
    # What answered, as `model at upstream` (failsoft.events.name_served); null for the requested
    # model, or if it is not reported.
    served = models.TextField(null=True)
    upstream = models.TextField(null=True)
    system_fingerprint = models.TextField(null=True)
    reasoning_tokens = models.IntegerField(null=True)
    # Why nothing checked the answer; and whether reading it changed a value.
    unchecked = models.TextField(null=True)
    is_altered = models.BooleanField(null=True)
    # Where the call was made or served, and the name of the credential; never the credential.
    region = models.TextField(null=True)
    credential = models.TextField(null=True)

    class Meta:
        managed = False
        db_table = "diagnostics_event"

    @property
    def name(self) -> str:
        """The documented name, `graph.<node>.<kind>`."""
        return event_name(self.node, EventKind(self.kind))

    @property
    def sent_time(self) -> datetime:
        return self.claimed_at or self.occurred_at

    @property
    def clock_mark(self) -> TimeMark | None:
        """Whether the sender's clock was ahead, or the event came too late for alerts."""
        if self.claimed_at is not None:
            return TimeMark.AHEAD
        is_late = floor(self.occurred_at, WIDTHS[Grain.MINUTE]) + LATE <= self.received_at
        return TimeMark.LATE if is_late else None

    @property
    def served_model(self) -> str | None:
        """The model that answered; None if it is the requested one or is not reported."""
        if self.served is None:
            return None
        model = self.served.removesuffix(f" at {self.upstream}") if self.upstream else self.served
        return None if model == self.model else model


class StoredEvent(EventColumns):
    """A read-only event for Django's administration, which supports no composite key."""

    named = "{0.node} {0.kind} {0.correlation_id}"
    event_id = models.UUIDField(primary_key=True)

    class Meta:
        managed = False
        db_table = "diagnostics_event"
        verbose_name = "event"


class EventPayload(NamedRow):
    """The redacted detail of a failure, or of a coerced attempt."""

    named = "{0.event_id}"
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
    # The preview was dropped: the project sent more than its spike bound allows.
    sampled_out = models.BooleanField(db_default=False)
    # Of the failure (diagnostics.store.fingerprints); null if it is none.
    fingerprint = models.UUIDField(null=True)

    class Meta:
        managed = False
        db_table = "diagnostics_event_payload"


class EventIdentity(ProjectRow):
    """Distinguishes a duplicate from a conflict when an event id is repeated."""

    named = "{0.event_id}"
    pk = models.CompositePrimaryKey("project", "event_id")
    event_id = models.UUIDField()
    occurred_at = models.DateTimeField()
    content_hash = models.BinaryField(max_length=32)
    received_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "event identities"
        indexes = [
            # Read by the daily purge of identities older than 8 days.
            index("diagnostics_identity_age", "received_at")
        ]


class Series(ProjectRow):
    """The unit of every rate: (environment, node, provider, model) of a project."""

    named = "{0.provider}/{0.model} {0.node}"
    # md5 of the JSON array of the four: texts may be too long for an index.
    key = models.UUIDField()
    environment = models.TextField(null=True, blank=True)
    node = models.TextField()
    provider = models.TextField(null=True, blank=True)
    model = models.TextField(null=True, blank=True)
    first_seen = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name_plural = "series"
        constraints = [
            # Read by every fold.
            unique("diagnostics_series_once", "project key")
        ]


class Version(ProjectRow):
    """A combination of prompt version, schema, source, release, answerer, region, credential."""

    named = "{0.source} {0.release} {0.prompt_version}"
    # md5 of the JSON array of the eight.
    key = models.UUIDField()
    prompt_version = models.TextField(null=True, blank=True)
    schema = models.TextField(null=True, blank=True)
    schema_version = models.TextField(null=True, blank=True)
    source = models.TextField(null=True, blank=True)
    release = models.TextField(null=True, blank=True)
    served = models.TextField(null=True, blank=True)
    region = models.TextField(null=True, blank=True)
    credential = models.TextField(null=True, blank=True)
    first_seen = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # Read by every fold.
            unique("diagnostics_version_once", "project key")
        ]


class Outcome(PurgedRow):
    """The runs of one minute of one series, as counted by their source."""

    named = "{0.source} {0.minute:%Y-%m-%d %H:%M} #{0.sequence}"
    source = models.TextField()
    minute = models.DateTimeField()
    sequence = models.IntegerField()
    received_at = models.DateTimeField()
    content_hash = models.BinaryField(max_length=32)
    environment = models.TextField(null=True)
    node = models.TextField()
    provider = models.TextField(null=True)
    model = models.TextField(null=True)
    release = models.TextField(null=True)
    prompt_version = models.TextField(null=True)
    schema = models.TextField(null=True)
    schema_version = models.TextField(null=True)
    ok_first = models.IntegerField(default=0)
    repaired = models.IntegerField(default=0)
    degraded = models.IntegerField(default=0)
    stubbed = models.IntegerField(default=0)
    circuit_open = models.IntegerField(default=0)
    provider_failed = models.IntegerField(default=0)
    budget_exhausted = models.IntegerField(default=0)
    # In none of the rates.
    cancelled = models.IntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            # Also read by the purge, oldest first within a source.
            unique("diagnostics_outcome_once", "project source minute sequence")
        ]
        indexes = [
            # Read by the daily purge.
            index("diagnostics_outcome_age", "minute")
        ]


class OutboxMessage(NamedRow):
    """A task to enqueue; the row is authoritative, the message a hint."""

    named = "{0.task} #{0.pk}"
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
            index("diagnostics_outbox_due", "available_at id", Q(sent_at__isnull=True)),
            # Read by the purge of sent messages.
            index("diagnostics_outbox_sent", "sent_at", Q(sent_at__isnull=False)),
        ]


class Heartbeat(NamedRow):
    """One row per part: `beat` when a slot was sent, `worker` when one was executed.

    `queue:<name>` when a worker of that queue took a mark, `drained:<name>` the time in the latest
    of these marks (diagnostics.store.leases), `worker:<name>` while a worker of that queue is
    alive and takes messages whenever it has room, `pool:<name>` while its pool has no process.
    """

    name = models.CharField(max_length=64, primary_key=True)
    at = models.DateTimeField()

    @staticmethod
    def note(at: datetime, *names: str) -> None:
        """Record the time of parts in one statement; sorted, as others may write them, too."""
        rows = [Heartbeat(name=name, at=at) for name in sorted(names)]
        Heartbeat.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["name"], update_fields=["at"]
        )


class ProjectTurn(NamedRow):
    """The latest turn of a project in the work of every minute, and what was passed over."""

    named = "{0.minute:%Y-%m-%d %H:%M}"
    project = models.OneToOneField(
        "diagnostics.Project", models.CASCADE, primary_key=True, related_name="turn"
    )
    # The minute that the turn is of. It is open while it has begun after it ended.
    minute = models.DateTimeField()
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    # When all was last done in time, and what has not been since.
    judged_at = models.DateTimeField(null=True)
    passed_over = ArrayField(models.TextField(), default=list)


EVALUATOR = "evaluator"
"""The row of the alert evaluator."""


def heartbeat_of(part: Literal["queue", "drained", "worker", "pool"], queue: str) -> str:
    """Return the name of a queue's row for one of these parts."""
    return f"{part}:{queue}"


Timed = TypeVar("Timed", Event, EventPayload)


def events_of(project_id: int) -> models.QuerySet[Event]:
    events = Event.objects.filter(project_id=project_id)
    return events.order_by("-occurred_at", "-event_id")


def payloads_of(events: Sequence[Event]) -> dict[UUID, EventPayload]:
    """Return the details of these events (one project's), by event id."""
    return _matching_rows(EventPayload, events)


def events_behind(payloads: Sequence[EventPayload]) -> dict[UUID, Event]:
    """Return the events of these details (one project's), by event id."""
    return _matching_rows(Event, payloads)


def _matching_rows(model: type[Timed], rows: Sequence[Event | EventPayload]) -> dict[UUID, Timed]:
    if not rows:
        return {}
    times = [row.occurred_at for row in rows]
    rows_found = model._default_manager.filter(
        project_id=rows[0].project_id,
        event_id__in=[row.event_id for row in rows],
        # The times limit PostgreSQL to the right partitions.
        occurred_at__range=(min(times), max(times)),
    )
    return {row.event_id: row for row in rows_found}

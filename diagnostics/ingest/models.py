"""Rows of schemas, deploys, quotas, rejects and counts per key."""

from datetime import datetime
from enum import StrEnum

from django.db import models
from django.db.models import Q, Sum
from django.db.models.functions import Now

from diagnostics.accounts.models import ApiKey, Project
from diagnostics.constraints import NamedRow, ProjectRow, index, known, unique
from diagnostics.ingest.deploy_items import DeployKind, ObservedKind
from diagnostics.redaction.fields import RedactedTextField


class AgentSchema(NamedRow):
    """A version of a node's schema; versions are immutable, and one is current."""

    named = "{0.node} {0.version}"
    project = models.ForeignKey(
        Project, models.CASCADE, related_name="agent_schemas", db_index=False
    )
    node = models.CharField(max_length=63)
    version = models.CharField(max_length=200)
    json_schema = models.JSONField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    # Null: history, nothing is checked against it.
    current_since = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            unique("diagnostics_agentschema_version_once", "project node version"),
            # Read with every batch of spans that carries answers.
            unique(
                "diagnostics_agentschema_one_current",
                "project node",
                Q(current_since__isnull=False),
            ),
        ]


class SpanRow(ProjectRow):
    """What is known of a span, for a day at most."""

    named = "{0.trace_id}/{0.span_id}"
    trace_id = models.CharField(max_length=32)
    span_id = models.CharField(max_length=16)
    received_at = models.DateTimeField()

    class Meta:
        abstract = True
        constraints = [
            # Read with every batch of spans, and by the settling of a run.
            unique("%(app_label)s_%(class)s_once", "project trace_id span_id")
        ]
        indexes = [
            # Read by the deleting of what is old.
            index("%(app_label)s_%(class)s_age", "received_at")
        ]


class SpanVerdict(SpanRow):
    """A call's answer from a log record that arrived before the span of the call.

    `content` is the redacted event as far as it is known, without the text of the answer. A row
    lives for minutes: its span takes it, or it becomes an event of its own.
    """

    content = models.JSONField()


class SpanCall(SpanRow):
    """A span of the last day that reported a model call, and its event.

    Texts of the sender are stored as keys, for comparison only.
    """

    # Empty for the root of a trace.
    parent_id = models.CharField(max_length=16)
    # Keys of the instrumentation, and of the id of the provider's response.
    scope = models.UUIDField()
    response = models.UUIDField(null=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    event_id = models.UUIDField()
    # How much was known of the answer: 2 its text, 1 an error, 0 nothing.
    weight = models.PositiveSmallIntegerField()
    # Its event includes the report of another span or a log record.
    is_joined = models.BooleanField()

    class Meta(SpanRow.Meta):
        indexes = [
            *SpanRow.Meta.indexes,
            # Read with every batch of spans.
            index("diagnostics_spancall_response", "project response", Q(response__isnull=False)),
        ]


class UnplacedCall(ProjectRow):
    """An event of a span without an attempt number, or the end of run derived from it.

    A row is kept for a day, in which a late span can still change the run.
    """

    named = "{0.correlation_id} {0.event_id}"
    correlation_id = models.TextField()
    event_id = models.UUIDField()
    occurred_at = models.DateTimeField()
    received_at = models.DateTimeField()
    started_at = models.DateTimeField()
    trace_id = models.CharField(max_length=32)
    parent_id = models.CharField(max_length=16, blank=True)
    # As reported; the event has the cycle of its attempts.
    cycle = models.IntegerField(default=1)
    # The event says that no attempt was good; it is derived, not reported.
    is_end = models.BooleanField(default=False)
    # If not, the agent around it may, though it arrives later.
    names_node = models.BooleanField(default=True, db_default=True)

    class Meta:
        constraints = [
            # A span that is exported again is one call.
            unique("diagnostics_unplacedcall_once", "project event_id")
        ]
        indexes = [
            # Read by the settling of a run.
            index("diagnostics_unplacedcall_run", "project correlation_id"),
            # Read by the purge.
            index("diagnostics_unplacedcall_age", "received_at"),
        ]


class AgentSpan(SpanRow):
    """A call of an agent, within which attempts are counted. A row is kept for a day."""

    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    # Of the calls within it that name none; empty if no agent is named.
    node = models.CharField(max_length=63, blank=True, default="", db_default="")


class Deploy(NamedRow):
    """A change of a release, prompt, schema or validator, or an observed change of the answerer."""

    named = "{0.kind} {0.version}"
    project = models.ForeignKey(Project, models.CASCADE, related_name="deploys", db_index=False)
    at = models.DateTimeField()
    kind = models.CharField(
        max_length=20, choices=[(kind.value, kind.value) for kind in (*DeployKind, *ObservedKind)]
    )
    source = models.TextField(null=True, blank=True)
    environment = models.TextField(null=True, blank=True)
    # Of an observed change: the requested model, and its previous answerer.
    provider = models.TextField(null=True, blank=True)
    model = models.TextField(null=True, blank=True)
    version = models.TextField()
    previous = models.TextField(null=True, blank=True)
    note = RedactedTextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # A deploy reported twice is one.
            unique(
                "diagnostics_deploy_once",
                "project at kind source environment version",
                Q(kind__in=[kind.value for kind in DeployKind]),
                nulls_distinct=False,
            ),
            known("diagnostics_deploy_kind_known", "kind", (*DeployKind, *ObservedKind)),
        ]
        indexes = [
            # Read by every list, newest first.
            index("diagnostics_deploy_newest", "project -at -id")
        ]


def deploys_of(
    project_id: int, since: datetime | None = None, until: datetime | None = None
) -> models.QuerySet[Deploy]:
    """Return reported and observed deploys with since <= at < until, newest first."""
    deploys = Deploy.objects.filter(project_id=project_id)
    if since:
        deploys = deploys.filter(at__gte=since)
    if until:
        deploys = deploys.filter(at__lt=until)
    return deploys.order_by("-at", "-id")


def reported_deploys(
    project_id: int, since: datetime | None = None, until: datetime | None = None
) -> models.QuerySet[Deploy]:
    """Return the reported deploys of a project, newest first."""
    return deploys_of(project_id, since, until).filter(kind__in=DeployKind)


def observed_changes(project_id: int, since: datetime, until: datetime) -> models.QuerySet[Deploy]:
    """Return the observed changes of answerers, newest first."""
    return deploys_of(project_id, since, until).filter(kind__in=ObservedKind)


class Answerer(ProjectRow):
    """A served model, upstream or fingerprint of a model, and when it was last seen."""

    named = "{0.model}: {0.value}"
    # md5 of environment, provider, model and kind: texts may be too long for an index.
    slot = models.UUIDField()
    environment = models.TextField(null=True)
    provider = models.TextField(null=True)
    model = models.TextField()
    kind = models.CharField(
        max_length=20, choices=[(kind.value, kind.value) for kind in ObservedKind]
    )
    value = models.TextField()
    first_seen = models.DateTimeField()
    # Known to an hour: it is not updated more often.
    last_seen = models.DateTimeField()

    class Meta:
        constraints = [
            # Read when a batch has values not seen for some minutes.
            unique("diagnostics_answerer_once", "project slot value"),
            known("diagnostics_answerer_kind_known", "kind", ObservedKind),
        ]
        indexes = [
            # Read by the daily purge.
            index("diagnostics_answerer_age", "last_seen")
        ]


class NameKind(StrEnum):
    PROVIDER = "provider"
    MODEL = "model"


class SeriesName(ProjectRow):
    """The name of a provider or model in a project's series, by what its spellings share.

    The key is that of `diagnostics.ingest.series_names`, or a name itself that series had before
    its spellings were one name.
    """

    named = "{0.key}: {0.name}"
    kind = models.CharField(max_length=8, choices=[(kind.value, kind.value) for kind in NameKind])
    key = models.TextField()
    name = models.TextField()

    class Meta:
        constraints = [
            # Read when a batch has spellings not seen for some minutes.
            unique("diagnostics_seriesname_once", "project key kind"),
            known("diagnostics_seriesname_kind_known", "kind", NameKind),
        ]


class KeyMinute(ProjectRow):
    """Items of one key and source in one minute; the sum over all slots counts."""

    named = "{0.api_key_id} {0.minute:%H:%M}"
    api_key = models.ForeignKey(ApiKey, models.CASCADE, related_name="+", db_index=False)
    source = models.CharField(max_length=200, blank=True, default="")
    minute = models.DateTimeField()
    # Processes write to different slots, so that they rarely wait for each other.
    slot = models.PositiveSmallIntegerField(default=0)
    stored = models.BigIntegerField(default=0)
    duplicate = models.BigIntegerField(default=0)
    conflict = models.BigIntegerField(default=0)
    invalid = models.BigIntegerField(default=0)
    rejected = models.BigIntegerField(default=0)
    # Of the stored ones: answers that nothing checked. Of OpenTelemetry items: those that name
    # a model but are not a known kind of call.
    unchecked = models.BigIntegerField(default=0, db_default=0)
    not_understood = models.BigIntegerField(default=0, db_default=0)
    # New events ahead of the clock, and those that came too late for alerts.
    ahead = models.BigIntegerField(default=0, db_default=0)
    late = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            # Read by the ingestion page, and by the sweep that deletes what is old.
            unique("diagnostics_keyminute_once", "project minute api_key source slot")
        ]

    @staticmethod
    def count_late(project_id: int, since: datetime) -> int:
        minutes = KeyMinute.objects.filter(project_id=project_id, minute__gte=since)
        return minutes.aggregate(late=Sum("late"))["late"] or 0


class Quota(NamedRow):
    """The limits of a project; null means the installation's setting, 0 no limit."""

    named = "quota of {0.project}"
    project = models.OneToOneField(Project, models.CASCADE, primary_key=True, related_name="quota")
    key_events_per_second = models.PositiveIntegerField(null=True, blank=True)
    key_burst_events = models.PositiveIntegerField(null=True, blank=True)
    events_per_day = models.PositiveBigIntegerField(null=True, blank=True)
    events_per_month = models.PositiveBigIntegerField(null=True, blank=True)
    # Above this rate only a share of the previews is kept.
    spike_events_per_minute = models.PositiveIntegerField(null=True, blank=True)


class Usage(NamedRow):
    """Events of a project on a day (UTC) and in the current minute."""

    named = "{0.project} on {0.day}: {0.sent}"
    pk = models.CompositePrimaryKey("project", "day")
    project = models.ForeignKey(Project, models.CASCADE, related_name="usage")
    day = models.DateField()
    # Reserved by processes, for the limits; `sent` is what has arrived.
    events = models.BigIntegerField(default=0)
    sent = models.BigIntegerField(default=0, db_default=0)
    sampled_out = models.BigIntegerField(default=0)
    refused = models.BigIntegerField(default=0)
    minute_at = models.DateTimeField(null=True)
    minute_events = models.BigIntegerField(default=0)
    last_minute_events = models.BigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "usage"


class KeyBucket(NamedRow):
    """The token bucket of a key, shared by all processes."""

    named = "bucket of {0.api_key}"
    api_key = models.OneToOneField(ApiKey, models.CASCADE, primary_key=True, related_name="bucket")
    tokens = models.FloatField()
    refilled_at = models.DateTimeField()


class Reject(models.Model):
    """A rejected request, or a rejected item of a batch."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="rejects", db_index=False)
    api_key = models.ForeignKey(
        ApiKey, models.SET_NULL, related_name="+", null=True, db_index=False
    )
    received_at = models.DateTimeField()
    # The path of the request, without the query.
    endpoint = models.CharField(max_length=64)
    http_status = models.PositiveSmallIntegerField()
    source = models.TextField(null=True)
    # Of the item in its batch; null when the whole request was refused.
    item_index = models.IntegerField(null=True)
    event_id = models.TextField(null=True)
    code = models.TextField()
    path = models.TextField()
    message = models.TextField()
    errors = models.JSONField(default=list)
    head = models.TextField()
    size_bytes = models.IntegerField()

    class Meta:
        indexes = [
            # Read by the inbox, newest first, and by the bound that drops the oldest.
            index("diagnostics_reject_newest", "project -id")
        ]

    def __str__(self) -> str:
        return f"{self.code} at {self.path or 'body'}"

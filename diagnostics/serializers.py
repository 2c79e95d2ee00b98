"""Shapes of answers, for writing them and for the OpenAPI document."""

from typing import Any

from rest_framework import serializers

from diagnostics.core.deploys import DeployKind
from diagnostics.core.events import EventKind, ParseErrorType
from diagnostics.core.series import SeriesState
from diagnostics.core.verdict.suspects import Cause
from diagnostics.models import Event, EventPayload

Texts = serializers.CharField
Numbers = serializers.IntegerField
Shares = serializers.FloatField


class FaultSerializer(serializers.Serializer[Any]):
    """One reason why an item was refused."""

    path = Texts(help_text="JSON pointer into the item")
    code = Texts()
    message = Texts()


class ItemResultSerializer(serializers.Serializer[Any]):
    """What became of one item of a batch."""

    index = Numbers(min_value=0)
    event_id = Texts(allow_null=True)
    status = serializers.ChoiceField(["created", "duplicate", "conflict", "invalid"])
    errors = FaultSerializer(many=True, required=False)  # type: ignore[assignment] # the wire calls it so


class BatchResultSerializer(serializers.Serializer[Any]):
    """What became of a batch; `results` lists what was not created."""

    accepted = Numbers()
    duplicates = Numbers()
    rejected = Numbers()
    preview_share = Shares(help_text="of previews that are kept now; under 1 above the spike bound")
    results = ItemResultSerializer(many=True)


class ProblemSerializer(serializers.Serializer[Any]):
    """A refusal of the whole request."""

    detail = Texts()
    code = Texts(required=False)
    line = Numbers(required=False, help_text="1-based, of a body that is not JSON")
    column = Numbers(required=False)
    errors = FaultSerializer(many=True, required=False)  # type: ignore[assignment] # the wire calls it so


class EventItemSerializer(serializers.Serializer[Any]):
    """An event as kept: redacted, with its detail where there is one."""

    event_id = serializers.UUIDField()
    name = Texts()
    kind = serializers.ChoiceField([kind.value for kind in EventKind])
    occurred_at = serializers.DateTimeField()
    received_at = serializers.DateTimeField()
    correlation_id = Texts()
    node = Texts()
    cycle = Numbers()
    attempt = Numbers(allow_null=True)
    attempts = Numbers(allow_null=True)
    reason = Texts(allow_null=True)
    status = Texts(allow_null=True)
    tool = Texts(allow_null=True)
    provider = Texts(allow_null=True)
    model = Texts(allow_null=True)
    schema = Texts(allow_null=True)
    schema_version = Texts(allow_null=True)
    prompt_version = Texts(allow_null=True)
    environment = Texts(allow_null=True)
    source = Texts(allow_null=True)  # type: ignore[assignment] # the wire calls it so
    release = Texts(allow_null=True)
    parse_error_type = serializers.ChoiceField(
        [kind.value for kind in ParseErrorType], allow_null=True
    )
    original_error_type = Texts(allow_null=True)
    finish_reason = Texts(allow_null=True)
    validation_errors = serializers.ListField(child=serializers.DictField())
    raw_output_preview = Texts(allow_null=True)
    repairs = serializers.ListField(child=serializers.DictField())
    coerced = serializers.ListField(child=serializers.DictField())
    output_mode = Texts(allow_null=True)
    max_output_tokens = Numbers(allow_null=True)
    temperature = Shares(allow_null=True)
    latency_ms = Numbers(allow_null=True)
    input_tokens = Numbers(allow_null=True)
    output_tokens = Numbers(allow_null=True)
    attributes = serializers.DictField()
    sampled_out = serializers.BooleanField(help_text="the preview was not kept")


class EventPageSerializer(serializers.Serializer[Any]):
    """A page of events, newest first; `notes` say where filters narrowed the range."""

    items = EventItemSerializer(many=True)
    next = Texts(allow_null=True)
    notes = serializers.ListField(child=Texts())


class DeploySerializer(serializers.Serializer[Any]):
    """A deploy as kept."""

    id = Numbers()
    at = serializers.DateTimeField()
    kind = serializers.ChoiceField([kind.value for kind in DeployKind])
    source = Texts(allow_null=True)  # type: ignore[assignment] # the wire calls it so
    environment = Texts(allow_null=True)
    version = Texts()
    note = Texts(allow_blank=True)


class DeployPageSerializer(serializers.Serializer[Any]):
    """A page of deploys, newest first."""

    items = DeploySerializer(many=True)
    next = Texts(allow_null=True)


class RejectSerializer(serializers.Serializer[Any]):
    """One refused request or item, redacted."""

    id = Numbers()
    received_at = serializers.DateTimeField()
    endpoint = Texts()
    http_status = Numbers()
    key_id = Texts(allow_null=True)
    key_name = Texts(allow_null=True)
    source = Texts(allow_null=True)  # type: ignore[assignment] # the wire calls it so
    index = Numbers(allow_null=True, help_text="in its batch; null: the whole request")
    event_id = Texts(allow_null=True)
    code = Texts()
    path = Texts(allow_blank=True, help_text="JSON pointer into the item")
    message = Texts()
    errors = FaultSerializer(many=True)  # type: ignore[assignment] # the wire calls it so
    head = Texts(allow_blank=True, help_text="how it began, at most 2 KiB")
    size_bytes = Numbers()


class RejectPageSerializer(serializers.Serializer[Any]):
    """A page of the rejects inbox, newest first."""

    items = RejectSerializer(many=True)
    next = Texts(allow_null=True)


class LimitsSerializer(serializers.Serializer[Any]):
    """What may be sent, in events; 0 is no limit."""

    key_events_per_second = Numbers()
    key_burst_events = Numbers()
    events_per_day = Numbers()
    events_per_month = Numbers()
    spike_events_per_minute = Numbers()


class SentSerializer(serializers.Serializer[Any]):
    """What a project has sent on one day (UTC), to the last slice of each process."""

    day = serializers.DateField()
    events = Numbers()
    sampled_out = Numbers(help_text="previews that were not kept")
    refused = Numbers(help_text="events refused with 429")


class IngestSerializer(serializers.Serializer[Any]):
    """How ingestion of the project stands."""

    limits = LimitsSerializer()
    today = SentSerializer()
    events_this_month = Numbers()
    last_minute_events = Numbers()
    preview_share = Shares(help_text="of previews that are kept now")
    rejects = Numbers(help_text="in the inbox, at most the number that is kept")


class SeriesItemSerializer(serializers.Serializer[Any]):
    """A series in a window; shares are between 0 and 1."""

    provider = Texts(allow_null=True)
    model = Texts(allow_null=True)
    node = Texts()
    environment = Texts(allow_null=True)
    state = serializers.ChoiceField([state.value for state in SeriesState])
    runs = Numbers()
    degraded = Numbers()
    degraded_rate = Shares(allow_null=True)
    degraded_low = Shares(allow_null=True)
    degraded_high = Shares(allow_null=True)
    baseline = Shares(allow_null=True)
    first_pass_rate = Shares(allow_null=True)
    repair_success_rate = Shares(allow_null=True)
    retry_tokens = Numbers()
    retry_seconds = Shares()
    since = serializers.DateTimeField(allow_null=True)


class SeriesPageSerializer(serializers.Serializer[Any]):
    """All series of a window, worst first."""

    items = SeriesItemSerializer(many=True)
    next = Texts(allow_null=True)


class ExcessShareSerializer(serializers.Serializer[Any]):
    """How much of the excess one value of a dimension has, beside its share of calls."""

    dimension = Texts()
    value = Texts()
    share = Shares(help_text="of the excess; may be below 0 or above 1")
    traffic_share = Shares()
    lift = Shares(allow_null=True, help_text="share / traffic_share")


class AdviceSerializer(serializers.Serializer[Any]):
    """One thing to change, and why."""

    text = Texts()
    evidence = Texts()


class CauseVerdictSerializer(serializers.Serializer[Any]):
    """Which calls got worse, since when, and what it comes from."""

    state = serializers.ChoiceField(["ok", "degrading", "not_enough_data"])
    since = serializers.DateTimeField(allow_null=True)
    since_low = serializers.DateTimeField(allow_null=True)
    since_high = serializers.DateTimeField(allow_null=True)
    environment = Texts(allow_null=True)
    node = Texts(allow_null=True)
    provider = Texts(allow_null=True)
    model = Texts(allow_null=True)
    cause = serializers.ChoiceField([cause.value for cause in Cause], allow_null=True)
    cause_value = Texts(allow_null=True)
    top_kind = Texts(allow_null=True)
    rate = Shares(allow_null=True)
    low = Shares(allow_null=True)
    high = Shares(allow_null=True)
    baseline = Shares(allow_null=True)
    runs = Numbers(help_text="how many `rate` is of")
    counted = serializers.ChoiceField(
        ["runs", "calls"], allow_null=True, help_text="what `rate` is of"
    )
    excess = ExcessShareSerializer(many=True)
    advice = AdviceSerializer(many=True)
    sentence = Texts()


# The order of the document is the order of the answer.
ITEM_FIELDS = list(EventItemSerializer._declared_fields)
PAYLOAD_FIELDS: dict[str, Any] = {
    "raw_output_preview": None,
    "validation_errors": [],
    "repairs": [],
    "coerced": [],
    "attributes": {},
    "original_error_type": None,
    "tool": None,
    "temperature": None,
    "max_output_tokens": None,
    "sampled_out": False,
}


def describe_event(event: Event, payload: EventPayload | None) -> dict[str, Any]:
    """Give an event and its detail in the wire format."""
    return {
        field: _read_detail(payload, field) if field in PAYLOAD_FIELDS else getattr(event, field)
        for field in ITEM_FIELDS
    }


def _read_detail(payload: EventPayload | None, field: str) -> object:
    return getattr(payload, field) if payload else PAYLOAD_FIELDS[field]

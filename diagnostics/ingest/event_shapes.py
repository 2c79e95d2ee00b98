"""Events in the wire format of lists."""

from typing import Any

from rest_framework import serializers

from diagnostics.rest.openapi import Numbers, Shares, Texts
from diagnostics.store.models import Event, EventPayload
from failsoft.events import EventKind, ParseErrorType


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
    """Return an event and its detail in the wire format."""
    return {
        field: _read_detail(payload, field) if field in PAYLOAD_FIELDS else getattr(event, field)
        for field in ITEM_FIELDS
    }


def _read_detail(payload: EventPayload | None, field: str) -> object:
    return getattr(payload, field) if payload else PAYLOAD_FIELDS[field]

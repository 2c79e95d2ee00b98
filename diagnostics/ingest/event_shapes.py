"""Events in the wire format of lists."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from diagnostics.rest.resources import Json, Paged, Resource
from diagnostics.store.models import Event, EventPayload
from diagnostics.store.windows import TimeMark
from failsoft.events import EventKind, ParseErrorType, UncheckedReason


class EventResource(Resource):
    """A stored event, redacted, with its detail if there is one."""

    event_id: UUID
    name: str
    kind: EventKind
    occurred_at: datetime
    received_at: datetime
    time_mark: TimeMark | None = Field(
        description="`ahead` of the clock: it counts when received; `late`: not in alert rules"
    )
    correlation_id: str
    node: str
    cycle: int
    attempt: int | None
    attempts: int | None
    reason: str | None
    status: str | None
    tool: str | None
    provider: str | None
    model: str | None
    served_model: str | None = Field(description="where it is not the requested model")
    upstream: str | None = Field(description="the provider behind a gateway, or its host")
    system_fingerprint: str | None
    schema_name: str | None = Field(alias="schema")
    schema_version: str | None
    prompt_version: str | None
    environment: str | None
    source: str | None
    release: str | None
    region: str | None
    credential: str | None = Field(description="the name of a credential")
    parse_error_type: ParseErrorType | None
    original_error_type: str | None
    finish_reason: str | None
    validation_errors: list[Json]
    raw_output_preview: str | None
    repairs: list[Json]
    coerced: list[Json]
    output_mode: str | None
    max_output_tokens: int | None
    temperature: float | None
    latency_ms: int | None
    input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None = Field(description="part of `output_tokens`")
    attributes: Json
    unchecked: UncheckedReason | None = Field(description="why nothing checked the answer")
    sampled_out: bool = Field(description="the preview was not kept")


class EventPage(Paged[EventResource]):
    """A page of events, newest first; `notes` say how filters narrowed the range."""

    notes: list[str]


# In the order of the document.
ITEM_FIELDS = [field.alias or name for name, field in EventResource.model_fields.items()]
# Attributes of an event under other names.
COLUMNS = {"occurred_at": "sent_time", "time_mark": "clock_mark"}
NO_DETAIL: Json = {
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


def describe_event(event: Event, payload: EventPayload | None) -> Json:
    # Without the model's validation, which is too slow for up to 10 million rows.
    return {
        name: (getattr(payload, name) if payload else NO_DETAIL[name])
        if name in NO_DETAIL
        else getattr(event, COLUMNS.get(name, name))
        for name in ITEM_FIELDS
    }

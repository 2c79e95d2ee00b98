"""Items in protobuf, unpacked one at a time by OpenTelemetry's own messages."""

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as PackedLogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as PackedSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from diagnostics.ingest.otlp.attributes import is_known
from diagnostics.ingest.otlp.telemetry import (
    Attributes,
    LogRecord,
    MalformedError,
    Span,
    SpanEvent,
    TooManyValuesError,
    Value,
    ValueBudget,
)
from diagnostics.ingest.otlp.wire import Packed, split_request

MAX_ITEM_BYTES = 1 << 20
MAX_EVENTS = 64


def read_spans(body: bytes) -> Iterator[Span | None]:
    """Read an ExportTraceServiceRequest; None stands for a span beyond the bounds.

    Raises MalformedError at the first byte that is wrong, and TooManyError.
    """
    resources = _PackedResources()
    for packed in split_request(body):
        try:
            yield _span(packed, resources)
        except TooManyValuesError:
            yield None


def read_logs(body: bytes) -> Iterator[LogRecord | None]:
    """Read an ExportLogsServiceRequest; as `read_spans`."""
    resources = _PackedResources()
    for packed in split_request(body):
        try:
            yield _log_record(packed, resources)
        except TooManyValuesError:
            yield None


class _PackedResources:
    """Unpacks a resource once for all items that follow each other."""

    def __init__(self) -> None:
        self._packed: bytes | None = None
        self._attributes: Attributes = {}

    def read(self, packed: bytes) -> Attributes:
        if packed is not self._packed:
            message = _unpack(Resource, packed)
            self._attributes, _ = _attributes(message.attributes, ValueBudget())
            self._packed = packed
        return self._attributes


def _span(packed: Packed, resources: _PackedResources) -> Span:
    message = _unpack(PackedSpan, packed.item)
    budget = ValueBudget()
    attributes, dropped = _attributes(message.attributes, budget)
    events = []
    for event in message.events[:MAX_EVENTS]:
        told, more = _attributes(event.attributes, budget)
        dropped += more
        events.append(SpanEvent(event.name, told))
    return Span(
        trace_id=message.trace_id.hex(),
        span_id=message.span_id.hex(),
        name=message.name,
        started_ns=message.start_time_unix_nano,
        ended_ns=message.end_time_unix_nano,
        resource=resources.read(packed.resource),
        attributes=attributes,
        is_error=message.status.code == Status.STATUS_CODE_ERROR,
        events=tuple(events),
        dropped=dropped,
    )


def _log_record(packed: Packed, resources: _PackedResources) -> LogRecord:
    message = _unpack(PackedLogRecord, packed.item)
    budget = ValueBudget()
    attributes, dropped = _attributes(message.attributes, budget)
    return LogRecord(
        trace_id=message.trace_id.hex(),
        span_id=message.span_id.hex(),
        name=message.event_name,
        at_ns=message.time_unix_nano or message.observed_time_unix_nano,
        resource=resources.read(packed.resource),
        attributes=attributes,
        body=_value(message.body, budget),
        dropped=dropped,
    )


def _unpack(kind: Any, packed: bytes) -> Any:  # noqa: ANN401 - a message class of theirs
    if len(packed) > MAX_ITEM_BYTES:
        raise TooManyValuesError(TooManyValuesError.__doc__)
    try:
        return kind.FromString(packed)
    except DecodeError as error:
        name = kind.DESCRIPTOR.name
        raise MalformedError(f"a {name} that is no protobuf") from error


def _attributes(pairs: Iterable[Any], budget: ValueBudget) -> tuple[Attributes, int]:
    """Return what is known, and how many were dropped."""
    found: dict[str, Value] = {}
    dropped = 0
    for pair in pairs:
        if is_known(pair.key):
            found[pair.key] = _value(pair.value, budget)
        else:
            dropped += 1
    return found, dropped


def _value(packed: Any, budget: ValueBudget) -> Value:  # noqa: ANN401 - an AnyValue
    budget.spend()
    kind = packed.WhichOneof("value")
    if kind == "array_value":
        return [_value(item, budget) for item in packed.array_value.values]
    if kind == "kvlist_value":
        pairs = packed.kvlist_value.values
        return {pair.key: _value(pair.value, budget) for pair in pairs}
    if kind is None or kind == "bytes_value":
        return None
    value: Value = getattr(packed, kind)
    return value

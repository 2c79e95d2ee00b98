"""Spans and log records from messages: protobuf's own, or JSON with the same names."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from opentelemetry.proto.trace.v1.trace_pb2 import Status

from diagnostics.ingest.otlp.attributes import is_known
from diagnostics.ingest.otlp.telemetry import (
    Attributes,
    LogRecord,
    MalformedError,
    Span,
    SpanEvent,
    TooManyValuesError,
    UnreadItem,
    Value,
    ValueBudget,
)

# The last ones: answers and exceptions come after all that was asked.
MAX_EVENTS = 64
Item = TypeVar("Item", Span, LogRecord)
Read = TypeVar("Read")
# A resource and its items, in their encoding, each with the name of its scope.
Groups = Iterable[tuple[Any, Iterable[tuple[str, Any]]]]


def read_groups(
    groups: Groups,
    unpack_resource: Callable[[Any], Any],
    unpack_item: Callable[[Any], Any],
    read: Callable[[Any, Attributes, str], Item],
) -> Iterator[Item | UnreadItem]:
    """Yield item by item, reading a resource once; what cannot be read costs no other item."""
    for resource, items in groups:
        attributes: Attributes | UnreadItem | None = None
        for scope, item in items:
            if attributes is None:
                attributes = or_unread(lambda: _resource(unpack_resource(resource)))  # noqa: B023
            if isinstance(attributes, UnreadItem):
                yield attributes
            elif isinstance(item, UnreadItem):
                yield item
            else:
                yield or_unread(lambda: read(unpack_item(item), attributes, scope))  # noqa: B023


def or_unread(read: Callable[[], Read]) -> Read | UnreadItem:
    """Return what is read, or why it cannot be."""
    try:
        return read()
    except (MalformedError, TooManyValuesError) as error:
        return UnreadItem(str(error))


def _resource(message: Any) -> Attributes:  # noqa: ANN401 - a message
    return _attributes(message.attributes, ValueBudget())[0]


def read_span(message: Any, resource: Attributes, scope: str) -> Span:  # noqa: ANN401 - a message
    budget = ValueBudget()
    attributes, dropped = _attributes(message.attributes, budget)
    events = []
    for event in message.events[-MAX_EVENTS:]:
        known, more_dropped = _attributes(event.attributes, budget)
        dropped += more_dropped
        events.append(SpanEvent(event.name, known, event.time_unix_nano))
    return Span(
        trace_id=message.trace_id.hex(),
        span_id=message.span_id.hex(),
        name=message.name,
        started_ns=message.start_time_unix_nano,
        ended_ns=message.end_time_unix_nano,
        resource=resource,
        attributes=attributes,
        is_error=message.status.code == Status.STATUS_CODE_ERROR,
        events=tuple(events),
        dropped=dropped,
        parent_id=message.parent_span_id.hex(),
        scope=scope,
        status_message=message.status.message,
    )


def read_log_record(message: Any, resource: Attributes, scope: str) -> LogRecord:  # noqa: ANN401 - a message
    budget = ValueBudget()
    attributes, dropped = _attributes(message.attributes, budget)
    return LogRecord(
        trace_id=message.trace_id.hex(),
        span_id=message.span_id.hex(),
        name=message.event_name,
        at_ns=message.time_unix_nano or message.observed_time_unix_nano,
        resource=resource,
        attributes=attributes,
        body=_value(message.body, budget),
        dropped=dropped,
        scope=scope,
    )


def _attributes(pairs: Iterable[Any], budget: ValueBudget) -> tuple[Attributes, int]:
    """Return what is known, and how many were dropped."""
    known: dict[str, Value] = {}
    dropped = 0
    for pair in pairs:
        if is_known(key := pair.key):
            known[key] = _value(pair.value, budget)
        else:
            dropped += 1
    return known, dropped


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

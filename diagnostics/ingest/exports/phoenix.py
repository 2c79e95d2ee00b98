"""Phoenix's exports: one span per record, from its data frames or its API."""

from collections.abc import Iterator, Mapping
from typing import Any

from diagnostics.ingest.exports.values import (
    Values,
    flat,
    known_of,
    read_time,
    span_id_of,
    trace_id_of,
)
from diagnostics.ingest.otlp.telemetry import Span, SpanEvent

SCOPE = "phoenix-export"
ATTRIBUTES = "attributes."
UNNAMED = "UNKNOWN"


def is_span(record: Mapping[str, Any]) -> bool:
    """Whether a record is a span: `context.span_id`, or the same nested."""
    return bool(_context(record).get("span_id"))


def read_record(record: Mapping[str, Any]) -> Iterator[Span]:
    """Yield the span of a record; raises ValueError if it is none."""
    context = _context(record)
    if not (context.get("span_id") and context.get("trace_id")):
        raise ValueError("a span needs a context.span_id and a context.trace_id")
    started_ns = read_time(record.get("start_time"))
    kind = record.get("span_kind")
    kind_attribute = {} if kind in (None, "", UNNAMED) else {"openinference.span.kind": kind}
    yield Span(
        trace_id=trace_id_of(str(context["trace_id"])),
        span_id=span_id_of(str(context["span_id"])),
        name=str(record.get("name") or ""),
        started_ns=started_ns,
        ended_ns=max(read_time(record.get("end_time")), started_ns),
        resource={},
        attributes=known_of({**kind_attribute, **_attributes(record)}),
        is_error=record.get("status_code") == "ERROR",
        events=tuple(_events(record.get("events"))),
        parent_id=span_id_of(str(record.get("parent_id") or "")),
        scope=SCOPE,
    )


def _context(record: Values) -> Values:
    nested = record.get("context")
    if isinstance(nested, dict):
        return nested
    return {name: record.get(f"context.{name}") for name in ("trace_id", "span_id")}


def _attributes(record: Values) -> dict[str, Any]:
    nested = record.get("attributes")
    if isinstance(nested, dict):
        return dict(flat(nested))
    columns = {
        name.removeprefix(ATTRIBUTES): value
        for name, value in record.items()
        if name.startswith(ATTRIBUTES)
    }
    return dict(flat(columns))


def _events(events: object) -> Iterator[SpanEvent]:
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict) and isinstance(event.get("name"), str):
            attributes = event.get("attributes")
            nested = dict(flat(attributes)) if isinstance(attributes, dict) else {}
            yield SpanEvent(event["name"], known_of(nested), read_time(event.get("timestamp")))

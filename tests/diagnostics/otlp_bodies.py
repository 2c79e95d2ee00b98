"""Export requests for tests, in both encodings of OTLP."""

import json
import re
from collections.abc import Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
START_NS = 1_795_271_527_120_000_000
MILLISECOND_NS = 1_000_000
SPAN_LEVELS = ("resourceSpans", "scopeSpans", "spans")
LOG_LEVELS = ("resourceLogs", "scopeLogs", "logRecords")
RESOURCE = {
    "service.name": "support-bot",
    "service.version": "2026.11.20-2",
    "deployment.environment.name": "prod",
}
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "anthropic",
    "gen_ai.request.model": "claude-haiku-4",
    "gen_ai.usage.input_tokens": 911,
    "gen_ai.usage.output_tokens": 512,
    "gen_ai.response.finish_reasons": ["stop"],
}


def any_value(value: object) -> AnyValue:
    """Pack a Python value."""
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, bytes):
        return AnyValue(bytes_value=value)
    if isinstance(value, list):
        packed = [any_value(item) for item in value]
        return AnyValue(array_value=ArrayValue(values=packed))
    if isinstance(value, dict):
        return AnyValue(kvlist_value=KeyValueList(values=key_values(value)))
    return AnyValue()


def key_values(attributes: dict[str, Any]) -> list[KeyValue]:
    """Pack attributes."""
    return [KeyValue(key=key, value=any_value(item)) for key, item in attributes.items()]


def span(
    attributes: dict[str, Any] | None = None,
    *,
    trace_id: str = TRACE,
    span_id: str = SPAN,
    is_error: bool = False,
    events: Sequence[tuple[str, dict[str, Any]]] = (),
    start_ns: int = START_NS,
    **changes: Any,
) -> Span:
    """Make a span of a chat; attributes are added to those of the conventions."""
    fields: dict[str, Any] = {
        "trace_id": bytes.fromhex(trace_id),
        "span_id": bytes.fromhex(span_id),
        "name": "chat claude-haiku-4",
        "start_time_unix_nano": start_ns,
        "end_time_unix_nano": start_ns + 1840 * MILLISECOND_NS if start_ns else 0,
        "attributes": key_values({**CHAT, **(attributes or {})}),
        "events": [Span.Event(name=name, attributes=key_values(told)) for name, told in events],
    }
    if is_error:
        fields["status"] = Status(code=Status.STATUS_CODE_ERROR)
    return Span(**{**fields, **changes})


def log_record(
    name: str,
    attributes: dict[str, Any] | None = None,
    body: object = None,
    trace_id: str = TRACE,
    span_id: str = SPAN,
) -> LogRecord:
    """Make a log record of an event."""
    return LogRecord(
        time_unix_nano=START_NS,
        event_name=name,
        attributes=key_values(attributes or {}),
        body=any_value(body),
        trace_id=bytes.fromhex(trace_id),
        span_id=bytes.fromhex(span_id),
    )


def traces(
    *spans: Span, resource: dict[str, Any] | None = None, scope: str = ""
) -> ExportTraceServiceRequest:
    """Make an export request of spans of one resource, told by one instrumentation."""
    request = ExportTraceServiceRequest()
    holder = request.resource_spans.add()
    holder.resource.attributes.extend(key_values(RESOURCE | (resource or {})))
    told = holder.scope_spans.add()
    told.scope.name = scope
    told.spans.extend(spans)
    return request


def logs(*records: LogRecord, resource: dict[str, Any] | None = None) -> ExportLogsServiceRequest:
    """Make an export request of log records of one resource."""
    request = ExportLogsServiceRequest()
    holder = request.resource_logs.add()
    holder.resource.attributes.extend(key_values(RESOURCE | (resource or {})))
    holder.scope_logs.add().log_records.extend(records)
    return request


def as_json(request: Any) -> bytes:
    """Write a request as OTLP's JSON: ids in hex, where protobuf's own JSON has base64."""
    document = MessageToDict(request)
    is_traces = isinstance(request, ExportTraceServiceRequest)
    written, packed = [document], [request]
    for name in SPAN_LEVELS if is_traces else LOG_LEVELS:
        field = re.sub("([A-Z])", r"_\1", name).lower()
        written = [inner for outer in written for inner in outer.get(name, [])]
        packed = [inner for outer in packed for inner in getattr(outer, field)]
    for item, message in zip(written, packed, strict=True):
        parent = getattr(message, "parent_span_id", b"")
        ids = {"traceId": message.trace_id, "spanId": message.span_id, "parentSpanId": parent}
        item |= {name: value.hex() for name, value in ids.items() if name in item}
    return json.dumps(document).encode()


def in_snake_case(value: object) -> Any:
    """Write the keys of a document in snake case, as protobuf's own JSON may."""
    if isinstance(value, list):
        return [in_snake_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", key): in_snake_case(v)
        for key, v in value.items()
    }


def before_1_0(document: Any) -> Any:
    """Write a document with the names that it had before OTLP 1.0."""
    text = json.dumps(document).replace('"scopeLogs"', '"instrumentationLibraryLogs"')
    text = text.replace('"scopeSpans"', '"instrumentationLibrarySpans"').replace(
        '"scope"', '"instrumentationLibrary"'
    )
    return json.loads(text.replace('"logRecords"', '"logs"'))

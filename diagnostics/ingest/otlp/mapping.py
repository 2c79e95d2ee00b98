"""From spans and log records to drafts of events: which ones there are, and their fields.

A span that calls a model (GenAI conventions, OpenInference or `failsoft.kind`) is one event; every
other span is none.
"""

from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from diagnostics.ingest.otlp import genai, openinference
from diagnostics.ingest.otlp.answers import Answer, ModelCall
from diagnostics.ingest.otlp.attributes import (
    ERROR_LEVEL,
    OBSERVATION,
    OWN_KIND,
    TABLE,
    AttributeMap,
    host,
    read_own_fields,
    short,
    slug,
)
from diagnostics.ingest.otlp.call_errors import raised, read_error
from diagnostics.ingest.otlp.conventions import (
    OPENED,
    SILENT,
    calls_model,
    is_model_call,
    named_call,
    names_model,
    read_call,
)
from diagnostics.ingest.otlp.drafts import CALL, DEFAULT_NODE, Draft, expectations_of
from diagnostics.ingest.otlp.telemetry import CallPlace, LogRecord, Span, time_of
from failsoft.events import MAX_INTEGER, EventKind
from failsoft.parsing.makers import FinishClass, ending_of

REGIONS = TABLE["read"]["region"]
# The fields of a call that an event has under the same name.
FACTS = {item.name for item in fields(ModelCall)} - {"answer", "attributes", "node"}
ANSWER = "answer"
# Reported beside a call, not instead of it.
BESIDE = frozenset({EventKind.DEGRADED, EventKind.UNKNOWN_TOOL})
TRACE_DIGITS, SPAN_DIGITS = 32, 16
LATEST_NS = 1 << 62


class NoEventError(ValueError):
    """A span or log record is refused; the text names the attribute at fault."""


def draft_span(span: Span) -> list[Draft]:
    """Return the events of a span: one for a call, one for a report beside it, or none."""
    _check_ids(span.trace_id, span.span_id)
    attributes = named_call(span.name, span.scope, span.attributes)
    kind = _reported_kind(attributes)
    is_error = (
        span.is_error
        or short(attributes, f"{OBSERVATION}level") == ERROR_LEVEL
        or short(attributes, "error.type") is not None
    )
    is_call = not openinference.is_step(span) and is_model_call(attributes, is_error=is_error)
    if not is_call and kind is None:
        return []
    call = read_call(attributes, span.events, span.scope)
    # Nothing says that the model answered, not even how long or why it ended.
    is_unanswered = call.broke_off or not (call.has_begun or call.finish_reason)
    is_silent = span.scope in SILENT and kind is None
    is_error |= call.broke_off or (is_unanswered and (is_silent or raised(span.events)))
    if is_unanswered and is_error:
        call = replace(call, served_model=None)
    elif is_unanswered and kind is None and span.scope in OPENED:
        return []
    fields = _fields(call, attributes, span.resource, span.trace_id)
    fields["occurred_at"] = moment_of(span.ended_ns or span.started_ns)
    milliseconds = min((span.ended_ns - span.started_ns) // 1_000_000, MAX_INTEGER)
    fields["latency_ms"] = milliseconds if 0 < span.started_ns < span.ended_ns else None
    fields["attributes"]["span_id"] = span.span_id
    beside = [_draft_beside(span.trace_id, span.span_id, kind, fields)] if kind in BESIDE else []
    if beside and not is_call:
        return beside
    place = CallPlace(
        *(span.trace_id, span.span_id, span.parent_id, span.started_ns, span.ended_ns, span.scope),
        call.attributes.get("response_id"),
    )
    draft = Draft(
        span.trace_id,
        span.span_id,
        CALL,
        None if beside else kind,
        fields,
        known_answer(call),
        read_error(attributes, span.events, span.status_message).named_by(call),
        is_error,
        place,
        is_numbered="attempt" in fields,
        **expectations_of(call, attributes),
    )
    return [draft, *beside]


def _reported_kind(attributes: AttributeMap) -> EventKind | None:
    """Return the kind that an agent names for an item; raises NoEventError for an unknown one."""
    kind = short(attributes, OWN_KIND)
    if kind in frozenset(EventKind):
        return EventKind(kind)
    if OWN_KIND in attributes:
        raise NoEventError(f"failsoft.kind: one of {', '.join(EventKind)}")
    return None


def known_answer(call: ModelCall) -> Answer:
    """Return the answer; an empty one after a tool call was omitted from the telemetry."""
    answer = call.answer or Answer()
    is_called = ending_of(call.finish_reason) is FinishClass.TOOL_CALLS
    is_empty = not answer.calls and not (answer.text or "").strip()
    return Answer() if is_called and is_empty else answer


def is_strange(item: Span | LogRecord) -> bool:
    """Whether an item without an event names a model and is of no known kind."""
    if not isinstance(item, Span) or openinference.is_step(item):
        return False
    return names_model(item.attributes) and calls_model(item.attributes) is None


def draft_log(record: LogRecord) -> list[Draft]:
    """Return the events of a log record: a model's answer, or what `failsoft.kind` says.

    Inside a span it is about the answer only: the span reports the call itself.
    """
    attributes = record.attributes
    name = record.name or short(attributes, "event.name") or ""
    kind = _reported_kind(attributes)
    answer = genai.answer_of_event(name, attributes, record.body)
    if kind is None and not answer.is_known:
        return []
    body = record.body if isinstance(record.body, dict) else {}
    call = read_call({**body, **attributes}, scope=record.scope)
    fields = _fields(call, attributes, record.resource, record.trace_id)
    fields["occurred_at"] = moment_of(record.at_ns)
    reason = fields.get("finish_reason") or answer.finish_reason
    fields |= {"finish_reason": reason} if reason else {}
    if record.span_id:
        _check_ids(record.trace_id, record.span_id)
        fields["attributes"]["span_id"] = record.span_id
    elif kind is None and name != genai.DETAILS:
        return []
    elif "correlation_id" not in fields:
        raise NoEventError("failsoft.correlation_id is required outside a trace")
    if kind in BESIDE:
        return [_draft_beside(record.trace_id, record.span_id, kind, fields)]
    slot = CALL if kind or not record.span_id else ANSWER
    draft = Draft(record.trace_id, record.span_id, slot, kind, fields, answer)
    return [replace(draft, **expectations_of(replace(call, answer=answer), attributes))]


def _fields(
    call: ModelCall, attributes: AttributeMap, resource: AttributeMap, trace_id: str
) -> dict[str, Any]:
    """Return the known wire fields; `failsoft.*` attributes override the others."""
    service = short(resource, "service.name")
    known = {
        "correlation_id": trace_id or None,
        "node": call.node,
        "cycle": 1,
        **{name: getattr(call, name) for name in FACTS},
        "upstream": host(attributes, "server.address"),
        "source": None if (service or "").startswith("unknown_service") else service,
        "release": short(resource, "service.version") or short(attributes, "langfuse.release"),
        "environment": short(resource, "deployment.environment.name", "deployment.environment")
        or short(attributes, "langfuse.environment"),
        # Of the call, else of the agent.
        "region": short(attributes, *REGIONS) or short(resource, *REGIONS),
    }
    reported = read_own_fields(attributes, resource)
    if "node" in reported:
        reported["node"] = slug(reported["node"]) or DEFAULT_NODE
    fields = {name: value for name, value in known.items() if value is not None} | reported
    server = short(attributes, "server.address")
    fields["attributes"] = {**call.attributes, **({"server_address": server} if server else {})}
    return fields


def _draft_beside(trace_id: str, span_id: str, kind: EventKind, fields: dict[str, Any]) -> Draft:
    """Return the draft of a run's end, or of an unregistered tool."""
    dropped = {"parse_error_type", "latency_ms", "finish_reason"}
    if kind is EventKind.DEGRADED:
        dropped |= {"attempt", "input_tokens", "output_tokens", "reasoning_tokens"}
    kept_fields = {name: value for name, value in fields.items() if name not in dropped}
    slot = f"{kind} {fields.get('tool', '')}".rstrip()
    return Draft(trace_id, span_id, slot, kind, kept_fields)


def _check_ids(trace_id: str, span_id: str) -> None:
    if len(trace_id) != TRACE_DIGITS or not trace_id.strip("0"):
        raise NoEventError("trace_id: 16 bytes, not all zero")
    if len(span_id) != SPAN_DIGITS or not span_id.strip("0"):
        raise NoEventError("span_id: 8 bytes, not all zero")


def moment_of(nanoseconds: int) -> datetime:
    """Return a time of telemetry; raises NoEventError if it is missing or out of range."""
    if not 0 < nanoseconds < LATEST_NS:
        raise NoEventError("its time is missing or out of range")
    return time_of(nanoseconds)

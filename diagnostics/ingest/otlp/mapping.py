"""From spans and log records to events: which ones, of what kind, under which id.

1. A span that calls a model (GenAI conventions, OpenInference, or told by `failsoft.kind`)
   is one event; every other span is none.
2. The kind is what the agent tells (`failsoft.kind`, `failsoft.parse_error_type`), else what
   checking the answer found, else what ended the span, else a success.
3. The attempt is what the agent tells, else 1: an order of spans would depend on how they were
   batched, and an export that is repeated must give the same events.
4. The id is derived from project, trace, span and what the span is taken as.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address
from typing import Any
from uuid import UUID

from diagnostics.ingest.otlp import failsoft_attributes, genai, openinference
from diagnostics.ingest.otlp.attributes import Bag, ModelCall, count, short, slug
from diagnostics.ingest.otlp.telemetry import LogRecord, Span, SpanEvent
from diagnostics.ingest.schemas import SchemaVerdict
from failsoft.events import (
    MAX_INTEGER,
    REQUIRED_FIELDS,
    CallErrorType,
    EventKind,
    ParseErrorType,
    PostedEvent,
    event_name,
)
from failsoft.identifiers import EPOCH, uuid7

OTHER = "_OTHER"
# Raised by clients after the model has answered.
PARSE_ERRORS = {
    "JSONDecodeError": ParseErrorType.NOT_JSON,
    "ValidationError": ParseErrorType.SCHEMA_INVALID,
    "LengthFinishReasonError": ParseErrorType.TRUNCATED,
    "IncompleteOutputException": ParseErrorType.TRUNCATED,
    "ContentFilterFinishReasonError": ParseErrorType.REFUSAL,
}
TIMEOUTS = ("timeout", "timed_out", "timedout", "deadline")
LIMITS = ("ratelimit", "rate_limit", "resourceexhausted", "throttl", "toomanyrequests")
BREAKERS = ("circuitbreaker", "circuit_open", "breakeropen")
CODES = {
    "408": CallErrorType.TIMEOUT,
    "504": CallErrorType.TIMEOUT,
    "429": CallErrorType.RATE_LIMITED,
}


def error_of(bag: Bag, events: Iterable[SpanEvent]) -> str | None:
    """Name the error of a call: `error.type`, else the last exception, else the HTTP status."""
    told = short(bag, "error.type")
    if told is not None and told != OTHER:
        return told
    raised = [
        name
        for event in events
        if event.name == "exception" and (name := short(event.attributes, "exception.type"))
    ]
    if raised:
        return raised[-1]
    status = count(bag, "http.response.status_code")
    return str(status) if status is not None and status >= 400 else told


def call_error(name: str | None) -> CallErrorType:
    """Say why a call gave no answer, from the name of its error."""
    told = (name or "").lower()
    if told in CODES:
        return CODES[told]
    if any(part in told for part in TIMEOUTS):
        return CallErrorType.TIMEOUT
    if any(part in told for part in LIMITS):
        return CallErrorType.RATE_LIMITED
    if any(part in told for part in BREAKERS):
        return CallErrorType.CIRCUIT_OPEN
    return CallErrorType.PROVIDER_ERROR


def parse_error(name: str | None) -> ParseErrorType | None:
    """Say which parse failure an error is; None for one of the call itself."""
    return PARSE_ERRORS.get((name or "").rpartition(".")[2])


DEFAULT_NODE = "chat"
CALL = "call"
ANSWER = "answer"
# Told beside a call, not instead of it.
BESIDE = frozenset({EventKind.DEGRADED, EventKind.UNKNOWN_TOOL})
TRACE_DIGITS, SPAN_DIGITS = 32, 16
LATEST_NS = 1 << 62


class NoEventError(ValueError):
    """A span or log record is refused; the text says why, in words of its attributes."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before its answer was checked."""

    trace_id: str
    span_id: str
    slot: str
    kind: EventKind | None
    fields: dict[str, Any] = field(repr=False)
    answer: str | None = field(default=None, repr=False)
    error: str | None = None
    is_error: bool = False

    @property
    def node(self) -> str:
        """The node the event is counted under."""
        return str(self.fields["node"])

    @property
    def finish_reason(self) -> str | None:
        """Why the model stopped."""
        return self.fields.get("finish_reason")

    @property
    def expects_json(self) -> bool:
        """Whether the request asked for JSON, so that anything else is a failure."""
        return self.fields.get("output_mode") == "json"

    @property
    def is_open(self) -> bool:
        """Whether checking the answer can change what the event says."""
        is_told = "parse_error_type" in self.fields or self.kind is not None
        return self.answer is not None and not is_told


def draft_span(span: Span) -> list[Draft]:
    """Return the events of a span: one for a call, one for what is told beside it, or none."""
    bag = span.attributes
    kind = failsoft_attributes.told_kind(bag)
    if kind is None and failsoft_attributes.KIND in bag:
        raise NoEventError(f"failsoft.kind: one of {', '.join(EventKind)}")
    is_call = _is_call(bag)
    if not is_call and kind is None:
        return []
    _check_ids(span.trace_id, span.span_id)
    call = _read_call(span)
    fields = _fields(call, bag, span.resource, span.trace_id)
    fields["occurred_at"] = _moment(span.ended_ns or span.started_ns)
    fields["latency_ms"] = _milliseconds(span)
    fields["attributes"]["span_id"] = span.span_id
    error = error_of(bag, span.events)
    drafts = []
    if is_call or kind not in BESIDE:
        drafts.append(
            Draft(
                span.trace_id,
                span.span_id,
                CALL,
                None if kind in BESIDE else kind,
                fields,
                call.answer,
                error,
                span.is_error or short(bag, "error.type") is not None,
            )
        )
    if kind in BESIDE:
        drafts.append(_beside(span.trace_id, span.span_id, kind, fields))
    return drafts


def draft_log(record: LogRecord) -> list[Draft]:
    """Return the events of a log record: what it tells of a model's answer, or by `failsoft.kind`.

    Inside a span it speaks of the answer only: the call itself is the span's to tell.
    """
    bag = record.attributes
    name = record.name or short(bag, "event.name") or ""
    kind = failsoft_attributes.told_kind(bag)
    if kind is None and failsoft_attributes.KIND in bag:
        raise NoEventError(f"failsoft.kind: one of {', '.join(EventKind)}")
    answer = genai.answer_of_event(name, bag, record.body)
    if kind is None and answer.text is None:
        return []
    call = genai.read_call(_with_body(record))
    fields = _fields(call, bag, record.resource, record.trace_id)
    fields["occurred_at"] = _moment(record.at_ns)
    reason = fields.get("finish_reason") or answer.finish_reason
    fields |= {"finish_reason": reason} if reason else {}
    if record.span_id:
        _check_ids(record.trace_id, record.span_id)
        fields["attributes"]["span_id"] = record.span_id
    elif kind is None and name != genai.DETAILS:
        return []
    elif "correlation_id" not in fields:
        raise NoEventError("outside of a trace failsoft.correlation_id is needed")
    if kind in BESIDE:
        return [_beside(record.trace_id, record.span_id, kind, fields)]
    slot = CALL if kind or not record.span_id else ANSWER
    return [Draft(record.trace_id, record.span_id, slot, kind, fields, answer.text)]


def make_event(draft: Draft, project_id: int, verdict: SchemaVerdict | None) -> PostedEvent:
    """Make the event; pydantic's ValidationError for fields that are out of their bounds."""
    wire = dict(draft.fields)
    kind = draft.kind or _find_kind(draft, verdict)
    if kind is EventKind.PARSE_INVALID:
        wire.setdefault("raw_output_preview", draft.answer)
        if verdict is not None and verdict.error_type is not None:
            wire["parse_error_type"] = verdict.error_type
            wire["validation_errors"] = verdict.errors
        else:
            wire.setdefault("parse_error_type", parse_error(draft.error))
    if kind is EventKind.PROVIDER_ERROR:
        wire["attributes"] = {
            **wire["attributes"],
            "call_error_type": call_error(draft.error).value,
        }
        wire["original_error_type"] = draft.error
    if verdict is not None:
        wire["repairs"] = verdict.repairs
    if "attempt" in REQUIRED_FIELDS[kind]:
        wire.setdefault("attempt", 1)
    if kind is EventKind.DEGRADED:
        wire.setdefault("status", "failed")
    wire["name"] = event_name(draft.node, kind)
    wire["event_id"] = event_id(draft, project_id)
    return PostedEvent.model_validate(wire)


def event_id(draft: Draft, project_id: int) -> UUID:
    """Derive the id: the same span, exported again, has the same one."""
    told: tuple[object, ...] = (project_id, draft.trace_id, draft.span_id, draft.slot)
    if not draft.span_id:
        told += tuple(
            str(draft.fields.get(name, ""))
            for name in ("correlation_id", "node", "cycle", "attempt", "occurred_at")
        )
    digest = sha256()
    for part in told:
        encoded = str(part).encode()
        digest.update(len(encoded).to_bytes(4, "big") + encoded)
    return uuid7(draft.fields["occurred_at"], digest.digest())


def _find_kind(draft: Draft, verdict: SchemaVerdict | None) -> EventKind:
    if "parse_error_type" in draft.fields:
        return EventKind.PARSE_INVALID
    if verdict is not None and verdict.error_type is not None:
        return EventKind.PARSE_INVALID
    if not draft.is_error:
        return EventKind.SUCCEEDED
    is_parse_error = parse_error(draft.error) is not None
    return EventKind.PARSE_INVALID if is_parse_error else EventKind.PROVIDER_ERROR


def _is_call(bag: Bag) -> bool:
    if genai.is_model_call(bag):
        return True
    return not genai.denies(bag) and openinference.is_model_call(bag)


def _read_call(span: Span) -> ModelCall:
    """Read what both conventions tell; some instrumentations write both."""
    call = genai.read_call(span.attributes, span.events)
    if openinference.is_spoken(span.attributes):
        return call.completed_by(openinference.read_call(span.attributes))
    return call


def _fields(call: ModelCall, bag: Bag, resource: Bag, trace_id: str) -> dict[str, Any]:
    """Return the wire fields that are known; what the agent tells of itself comes first."""
    service = short(resource, "service.name")
    known = {
        "correlation_id": trace_id or None,
        "node": call.node or DEFAULT_NODE,
        "cycle": 1,
        "provider": call.provider,
        "model": call.model,
        "finish_reason": call.finish_reason,
        "output_mode": call.output_mode,
        "max_output_tokens": call.max_output_tokens,
        "temperature": call.temperature,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "reasoning_tokens": call.reasoning_tokens,
        "served_model": call.served_model,
        "upstream": _host(bag),
        "system_fingerprint": call.system_fingerprint,
        "source": None if (service or "").startswith("unknown_service") else service,
        "release": short(resource, "service.version"),
        "environment": short(resource, "deployment.environment.name", "deployment.environment"),
    }
    told = failsoft_attributes.read_fields(bag, resource)
    if "node" in told:
        told["node"] = slug(told["node"]) or DEFAULT_NODE
    fields = {name: value for name, value in known.items() if value is not None} | told
    fields["attributes"] = dict(_more(call, bag))
    return fields


def _host(bag: Bag) -> str | None:
    """Name the server that was called; an address of a pool would be another one each time."""
    server = short(bag, "server.address")
    try:
        ip_address(server or "")
    except ValueError:
        return server
    return None


def _more(call: ModelCall, bag: Bag) -> Iterator[tuple[str, str]]:
    yield from call.attributes.items()
    server = short(bag, "server.address")
    if server is not None:
        yield "server_address", server


def _beside(trace_id: str, span_id: str, kind: EventKind, fields: dict[str, Any]) -> Draft:
    """Return the draft of a run's end, or of a tool that nobody registered."""
    dropped = {"parse_error_type", "latency_ms", "finish_reason"}
    if kind is EventKind.DEGRADED:
        dropped |= {"attempt", "input_tokens", "output_tokens", "reasoning_tokens"}
    kept = {name: value for name, value in fields.items() if name not in dropped}
    slot = f"{kind} {fields.get('tool', '')}".rstrip()
    return Draft(trace_id, span_id, slot, kind, kept)


def _with_body(record: LogRecord) -> Bag:
    body = record.body if isinstance(record.body, dict) else {}
    return {**body, **record.attributes}


def _check_ids(trace_id: str, span_id: str) -> None:
    if len(trace_id) != TRACE_DIGITS or not trace_id.strip("0"):
        raise NoEventError("trace_id: 16 bytes, not all zero")
    if len(span_id) != SPAN_DIGITS or not span_id.strip("0"):
        raise NoEventError("span_id: 8 bytes, not all zero")


def _moment(nanoseconds: int) -> datetime:
    if not 0 < nanoseconds < LATEST_NS:
        raise NoEventError("its time is missing or out of range")
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _milliseconds(span: Span) -> int | None:
    if not 0 < span.started_ns <= span.ended_ns:
        return None
    return min((span.ended_ns - span.started_ns) // 1_000_000, MAX_INTEGER)

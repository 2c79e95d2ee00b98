"""From spans and log records to events: which ones, of what kind, under which id.

1. A span that calls a model (GenAI conventions, OpenInference, or told by `failsoft.kind`)
   is one event; every other span is none.
2. The kind is what the agent tells (`failsoft.kind`, `failsoft.parse_error_type`), else what
   checking the answer found, else what ended the span, else a success.
3. The attempt is what the agent tells, else 1, in the content that tells a repeated export by:
   which one it was is found out when the run is over (diagnostics.ingest.span_runs).
4. The id is derived from project, trace, span and what the span is taken as.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address
from typing import Any
from uuid import UUID

from diagnostics.ingest.otlp import failsoft_attributes, genai, langfuse, openinference
from diagnostics.ingest.otlp.answers import REFUSAL, Answer
from diagnostics.ingest.otlp.attributes import Bag, count, short, slug
from diagnostics.ingest.otlp.model_call import ModelCall
from diagnostics.ingest.otlp.telemetry import LogRecord, Span, SpanEvent
from diagnostics.ingest.otlp.told_schemas import answer_schema_of, is_structured, tools_of
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
from failsoft.parsing.surroundings import CUT_OFF_REASONS, DECLINED_REASONS

OTHER = "_OTHER"
# Raised by clients after the model has answered.
PARSE_ERRORS = {
    "JSONDecodeError": ParseErrorType.NOT_JSON,
    "ValidationError": ParseErrorType.SCHEMA_INVALID,
    "LengthFinishReasonError": ParseErrorType.TRUNCATED,
    "IncompleteOutputException": ParseErrorType.TRUNCATED,
    "ContentFilterFinishReasonError": ParseErrorType.REFUSAL,
    "OpenAIRefusalError": ParseErrorType.REFUSAL,
}
TIMEOUTS = ("timeout", "timed_out", "timedout", "timed out", "deadline")
LIMITS = ("ratelimit", "rate_limit", "resourceexhausted", "throttl", "toomanyrequests")
BREAKERS = ("circuitbreaker", "circuit_open", "breakeropen")
CODES = {
    "408": CallErrorType.TIMEOUT,
    "504": CallErrorType.TIMEOUT,
    "429": CallErrorType.RATE_LIMITED,
}


# As the SDKs of providers begin their messages.
STATUS = re.compile(r"(?:Error code|status_code): ([45][0-9]{2})\b")


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
    status = status_of(bag)
    return status or told or short(bag, f"{langfuse.OBSERVATION}status_message")


def status_of(bag: Bag) -> str | None:
    """Return the HTTP status a call failed with, where it is told."""
    status = count(bag, "http.response.status_code")
    if status is not None and status >= 400:
        return str(status)
    said = STATUS.match(short(bag, f"{langfuse.OBSERVATION}status_message") or "")
    return said[1] if said else None


def call_error(name: str | None, status: str | None = None) -> CallErrorType:
    """Say why a call gave no answer, from the name of its error and the status of HTTP."""
    told = (name or "").lower()
    for code in (told, status):
        if code in CODES:
            return CODES[code]
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


# Why a model stops that calls a tool.
TOOL_REASONS = frozenset({"tool_calls", "tool_call", "tool_use", "function_call"})
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
class CallPlace:
    """Where and when a call was made, and by which instrumentation it is told.

    `agent_call` names the call of the agent it belongs to, where the agent tells one.
    """

    trace_id: str
    span_id: str
    parent_id: str
    started_ns: int
    ended_ns: int
    scope: str
    response_id: str | None = None
    agent_call: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before its answer was checked."""

    trace_id: str
    span_id: str
    slot: str
    kind: EventKind | None
    fields: dict[str, Any] = field(repr=False)
    answer: Answer = field(default=Answer(), repr=False)
    error: str | None = None
    http_status: str | None = None
    is_error: bool = False
    # Where the call stands in its trace; None for what is told beside a call.
    place: CallPlace | None = None
    # Schemas the request told: of its tools by name, and of the answer it asked for.
    tools: Mapping[str, Any] = field(default_factory=dict, repr=False)
    answer_schema: Any = field(default=None, repr=False)
    is_structured: bool = False
    # The event that this one takes the place of.
    stored_id: UUID | None = None

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
        return self.fields.get("output_mode") == "json" or self.is_structured

    @property
    def verdict_reason(self) -> str | None:
        """Why the model stopped, as far as it decides what the answer is worth."""
        return REFUSAL if self.answer.is_refusal else self.finish_reason

    @property
    def is_open(self) -> bool:
        """Whether checking the answer can change what the event says."""
        is_told = "parse_error_type" in self.fields or self.kind is not None
        if is_told or (self.is_error and not (self.answer.text or self.answer.calls)):
            return False
        return self.answer.is_told or self.has_failed

    @property
    def has_failed(self) -> bool:
        """Whether it failed by the reason it ended for, whatever was expected of it."""
        reason = (self.verdict_reason or "").lower()
        if reason in CUT_OFF_REASONS:
            return not (self.answer.calls or (self.answer.text or "").strip())
        return reason in DECLINED_REASONS


def draft_span(span: Span) -> list[Draft]:
    """Return the events of a span: one for a call, one for what is told beside it, or none."""
    bag = span.attributes
    kind = failsoft_attributes.told_kind(bag)
    if kind is None and failsoft_attributes.KIND in bag:
        raise NoEventError(f"failsoft.kind: one of {', '.join(EventKind)}")
    is_call = _is_call(span)
    if not is_call and kind is None:
        return []
    _check_ids(span.trace_id, span.span_id)
    call = _read_call(span)
    fields = _fields(call, bag, span.resource, span.trace_id)
    fields["occurred_at"] = moment_of(span.ended_ns or span.started_ns)
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
                known_answer(call),
                error,
                status_of(bag),
                span.is_error or langfuse.is_error(bag) or short(bag, "error.type") is not None,
                _place_of(span, call),
                **expectations_of(call, bag),
            )
        )
    if kind in BESIDE:
        drafts.append(_beside(span.trace_id, span.span_id, kind, fields))
    return drafts


def known_answer(call: ModelCall) -> Answer:
    """Return the answer; nothing, after a call of a tool, is an answer that was left out."""
    answer = call.answer or Answer()
    is_called = (call.finish_reason or "").lower() in TOOL_REASONS
    is_empty = not answer.calls and not (answer.text or "").strip()
    return Answer() if is_called and is_empty else answer


def _place_of(span: Span, call: ModelCall) -> CallPlace:
    return CallPlace(
        span.trace_id,
        span.span_id,
        span.parent_id,
        span.started_ns,
        span.ended_ns,
        span.scope,
        call.attributes.get("response_id"),
        short(span.attributes, "gen_ai.agent.call.id"),
    )


def expectations_of(call: ModelCall, bag: Bag) -> dict[str, Any]:
    """Return what the request told of the answer it expects; read where there is an answer."""
    return {
        "tools": tools_of(bag) if call.answer is not None and call.answer.calls else {},
        "answer_schema": answer_schema_of(bag) if call.answer is not None else None,
        "is_structured": is_structured(bag),
    }


# They name a model and are no call of one, or none whose answer is a plan.
OTHER_OPERATIONS = frozenset(
    {
        "embeddings",
        "create_agent",
        "invoke_agent",
        "invoke_workflow",
        "execute_tool",
        "execute_task",
    }
)
OTHER_KINDS = frozenset(
    {
        "AGENT",
        "CHAIN",
        "EMBEDDING",
        "EVALUATOR",
        "GUARDRAIL",
        "PROMPT",
        "RERANKER",
        "RETRIEVER",
        "TOOL",
    }
)
MODEL_NAMES = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name")


def is_strange(item: Span | LogRecord) -> bool:
    """Whether something that became no event names a model, and is nothing that is known."""
    bag = item.attributes
    if short(bag, *MODEL_NAMES, f"{langfuse.OBSERVATION}model.name") is None:
        return False
    operation = (short(bag, "gen_ai.operation.name") or "").lower()
    kind = (short(bag, "openinference.span.kind") or "").upper()
    request = (short(bag, "llm.request.type") or "").lower()
    is_known = operation in OTHER_OPERATIONS or kind in OTHER_KINDS or request == "embedding"
    return isinstance(item, Span) and not is_known and not openinference.is_step(item)


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
    if kind is None and not answer.is_told:
        return []
    call = genai.read_call(_with_body(record))
    fields = _fields(call, bag, record.resource, record.trace_id)
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
        return [_beside(record.trace_id, record.span_id, kind, fields)]
    slot = CALL if kind or not record.span_id else ANSWER
    draft = Draft(record.trace_id, record.span_id, slot, kind, fields, answer)
    return [replace(draft, **expectations_of(call, bag))]


def make_event(draft: Draft, project_id: int, verdict: SchemaVerdict | None) -> PostedEvent:
    """Make the event; pydantic's ValidationError for fields that are out of their bounds."""
    wire = dict(draft.fields)
    kind = draft.kind or _find_kind(draft, verdict)
    if kind is EventKind.PARSE_INVALID:
        wire.setdefault("raw_output_preview", draft.answer.text or _calls_text(draft.answer))
        if verdict is not None and verdict.error_type is not None:
            wire["parse_error_type"] = verdict.error_type
            wire["validation_errors"] = verdict.errors
        else:
            wire.setdefault("parse_error_type", parse_error(draft.error))
    if kind is EventKind.PROVIDER_ERROR:
        wire["attributes"] = {
            **wire["attributes"],
            "call_error_type": call_error(draft.error, draft.http_status).value,
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
    if draft.stored_id is not None:
        return draft.stored_id
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


def _calls_text(answer: Answer) -> str | None:
    """Return the arguments that were found wrong, or else those of the first call."""
    return answer.calls[0].arguments if answer.calls else answer.text


def _is_call(span: Span) -> bool:
    bag = span.attributes
    if genai.is_model_call(bag):
        return True
    if genai.denies(bag) or openinference.is_step(span):
        return False
    return openinference.is_model_call(bag) or langfuse.is_model_call(bag)


def _read_call(span: Span) -> ModelCall:
    """Read what all conventions tell; some instrumentations write several."""
    bag = span.attributes
    call = genai.read_call(bag, span.events)
    if openinference.is_spoken(bag):
        call = call.completed_by(openinference.read_call(bag))
    if langfuse.is_model_call(bag):
        call = call.completed_by(langfuse.read_call(bag))
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
        "prompt_version": call.prompt_version,
        "source": None if (service or "").startswith("unknown_service") else service,
        "release": short(resource, "service.version") or short(bag, "langfuse.release"),
        "environment": short(resource, "deployment.environment.name", "deployment.environment")
        or short(bag, "langfuse.environment"),
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


def moment_of(nanoseconds: int) -> datetime:
    """Return a time of telemetry; NoEventError where it is none."""
    if not 0 < nanoseconds < LATEST_NS:
        raise NoEventError("its time is missing or out of range")
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _milliseconds(span: Span) -> int | None:
    if not 0 < span.started_ns <= span.ended_ns:
        return None
    return min((span.ended_ns - span.started_ns) // 1_000_000, MAX_INTEGER)

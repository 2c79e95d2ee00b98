"""From spans and log records to events: which ones, of what kind, under which id.

1. A span that calls a model (GenAI conventions, OpenInference or `failsoft.kind`)
   is one event; every other span is none.
2. The kind is the reported one (`failsoft.kind`, `failsoft.parse_error_type`), else the result
   of checking the answer, else the error of the span, else a success.
3. The attempt is the reported one, else 1, so that a repeated export has the same content: the
   real one is derived when the run is over (diagnostics.ingest.span_runs).
4. The id is derived from project, trace, span and slot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from diagnostics.ingest.otlp import genai, openinference
from diagnostics.ingest.otlp.answers import REFUSAL, Answer, ModelCall
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
from diagnostics.ingest.otlp.call_errors import ENDINGS, NO_ERROR, CallError, raised, read_error
from diagnostics.ingest.otlp.conventions import (
    CLOSED,
    ENDLESS,
    ENDS,
    OPENED,
    SILENT,
    calls_model,
    is_model_call,
    named_call,
    names_model,
    read_call,
)
from diagnostics.ingest.otlp.request_schemas import (
    answer_schema_of,
    is_structured,
    offers_tools,
    tools_of,
)
from diagnostics.ingest.otlp.telemetry import LogRecord, Span, time_of
from diagnostics.ingest.schemas import SchemaVerdict
from failsoft.events import (
    MAX_INTEGER,
    REQUIRED_FIELDS,
    EventKind,
    ParseErrorType,
    PostedEvent,
    UncheckedReason,
    event_name,
)
from failsoft.identifiers import derived_id
from failsoft.parsing.calls import call_markup
from failsoft.parsing.makers import CUT, FinishClass, ending_of

REGIONS = TABLE["read"]["region"]
# The endings whose answer is unusable, whatever it says.
UNUSABLE = frozenset({FinishClass.BLOCK, FinishClass.MALFORMED})
DEFAULT_NODE = "chat"
# The fields of a call that an event has under the same name.
FACTS = {item.name for item in fields(ModelCall)} - {"answer", "attributes", "node"}
CALL = "call"
ANSWER = "answer"
# Reported beside a call, not instead of it.
BESIDE = frozenset({EventKind.DEGRADED, EventKind.UNKNOWN_TOOL})
TRACE_DIGITS, SPAN_DIGITS = 32, 16
LATEST_NS = 1 << 62


class NoEventError(ValueError):
    """A span or log record is refused; the text names the attribute at fault."""


class CallPlace(NamedTuple):
    """Where and when a call was made, and which instrumentation reported it."""

    trace_id: str
    span_id: str
    parent_id: str
    started_ns: int
    ended_ns: int
    scope: str
    response_id: str | None = None
    # Service, model and kind of error of a failed call whose response is not named.
    failure: str | None = None
    # Whether nothing of an answer is reported but an error.
    has_failed: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before its answer was checked."""

    trace_id: str
    span_id: str
    slot: str
    kind: EventKind | None
    fields: dict[str, Any] = field(repr=False)
    answer: Answer = field(default=Answer(), repr=False)
    error: CallError = NO_ERROR
    is_error: bool = False
    # Where the call stands in its trace; None for a draft beside a call.
    place: CallPlace | None = None
    # Schemas in the request: of its tools by name (`tools_of`), and of the answer.
    tools: Mapping[str | None, Any] = field(default_factory=dict, repr=False)
    answer_schema: Any = field(default=None, repr=False)
    is_structured: bool = False
    # Why nothing checked the answer.
    unchecked: UncheckedReason | None = None
    # The event that this one replaces.
    stored_id: UUID | None = None

    @property
    def node(self) -> str:
        return str(self.fields["node"])

    @property
    def finish_reason(self) -> str | None:
        return self.fields.get("finish_reason")

    @property
    def expects_json(self) -> bool:
        """Whether the request asked for JSON, so that anything else is a failure."""
        return self.fields.get("output_mode") == "json" or self.is_structured

    @property
    def verdict_reason(self) -> str | None:
        """Why the model stopped, if that affects the verdict on the answer."""
        return REFUSAL if self.answer.is_refusal else self.finish_reason

    @property
    def is_reported(self) -> bool:
        """Whether the agent, or a log record checked before, says what the answer is."""
        is_judged = not self.fields.keys().isdisjoint(("parse_error_type", "repairs"))
        return self.kind is not None or is_judged

    @property
    def is_cancelled(self) -> bool:
        is_said = self.kind is not None or "parse_error_type" in self.fields
        return not is_said and (self.is_closed or self.error.is_cancelled(self.finish_reason))

    @property
    def is_closed(self) -> bool:
        """Whether a stream was closed by its reader before anything of it was reported."""
        scope = self.place.scope if self.place else ""
        return scope in CLOSED and self.lacks_end and not self.answer.is_known

    @property
    def is_unfinished(self) -> bool:
        """Whether a stream was closed by its reader: nothing says how the answer ended.

        Of instrumentations alone that say it of every other answer.
        """
        scope = self.place.scope if self.place else ""
        return scope.startswith(ENDS) and not scope.startswith(ENDLESS) and self.lacks_end

    @property
    def lacks_end(self) -> bool:
        return not (self.is_error or self.finish_reason or "output_tokens" in self.fields)

    @property
    def is_open(self) -> bool:
        """Whether checking the answer can change the event."""
        if (
            self.is_cancelled
            or self.is_reported
            or (self.is_error and not (self.answer.text or self.answer.calls))
        ):
            return False
        return self.answer.is_known or self.has_failed

    @property
    def ending(self) -> FinishClass | None:
        return ending_of(self.verdict_reason)

    @property
    def unread(self) -> ParseErrorType | None:
        """Why a client could not read the answer: why it ended, else the error of the client."""
        error = self.error.parse_error
        return error and ENDINGS.get(self.ending or "", error)

    @property
    def is_thinking_alone(self) -> bool:
        """Whether all tokens of an answer without content were reasoning."""
        tokens = self.fields.get("output_tokens")
        is_all = bool(tokens) and tokens == self.fields.get("reasoning_tokens")
        return is_all and self.has_no_content

    @property
    def has_failed(self) -> bool:
        """Whether it failed by the reason it ended for, even if the answer is not known."""
        is_cut = self.ending in CUT and self.has_no_content
        return is_cut or self.is_thinking_alone or self.ending in UNUSABLE

    @property
    def has_no_content(self) -> bool:
        """Whether there is no text and no call, known or not."""
        return not (self.answer.calls or (self.answer.text or "").strip())


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
    place = CallPlace(
        *(span.trace_id, span.span_id, span.parent_id, span.started_ns, span.ended_ns, span.scope),
        call.attributes.get("response_id"),
    )
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
                read_error(attributes, span.events, span.status_message).named_by(call),
                is_error,
                place,
                **expectations_of(call, attributes),
            )
        )
    if kind in BESIDE:
        drafts.append(_draft_beside(span.trace_id, span.span_id, kind, fields))
    return drafts


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


def expectations_of(call: ModelCall, attributes: AttributeMap) -> dict[str, Any]:
    """Return what the request says about the expected answer; schemas only for an answer."""
    answer = call.answer or Answer()
    # Looking for a call in a text takes longer than anything else here.
    needs_tools = offers_tools(attributes) and (
        answer.calls or call_markup(answer.text or "") is not None
    )
    return {
        "tools": tools_of(attributes) if needs_tools else {},
        "answer_schema": answer_schema_of(attributes) if call.answer is not None else None,
        "is_structured": is_structured(attributes),
    }


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


def make_event(draft: Draft, project_id: int, verdict: SchemaVerdict | None) -> PostedEvent:
    """Return the event; raises pydantic's ValidationError for fields out of bounds."""
    wire = dict(draft.fields)
    kind = draft.kind or _find_kind(draft, verdict)
    if kind is EventKind.PARSE_INVALID:
        text, calls = draft.answer[:2]
        wire.setdefault("raw_output_preview", text or (calls[0].arguments if calls else text))
        if verdict is not None and verdict.error_type is not None:
            wire["parse_error_type"] = verdict.error_type
            wire["validation_errors"] = verdict.errors
        else:
            wire.setdefault("parse_error_type", draft.unread)
    else:
        wire.pop("validation_errors", None)
    if kind is EventKind.SUCCEEDED:
        wire["unchecked"] = draft.unchecked
    if kind is EventKind.PROVIDER_ERROR:
        wire["attributes"] = {**wire["attributes"], "call_error_type": draft.error.kind.value}
        wire["original_error_type"] = draft.error.name
    if verdict is not None and kind is not EventKind.CANCELLED:
        wire["repairs"] = verdict.repairs
    if "attempt" in REQUIRED_FIELDS[kind]:
        wire.setdefault("attempt", 1)
    if kind is EventKind.DEGRADED:
        wire.setdefault("status", "failed")
    wire["name"] = event_name(draft.node, kind)
    wire["event_id"] = event_id(draft, project_id)
    return PostedEvent.model_validate(wire)


def event_id(draft: Draft, project_id: int) -> UUID:
    """Return the derived id: a span exported again has the same one."""
    if draft.stored_id is not None:
        return draft.stored_id
    identity: tuple[object, ...] = (project_id, draft.trace_id, draft.span_id, draft.slot)
    if not draft.span_id:
        identity += tuple(
            str(draft.fields.get(name, ""))
            for name in ("correlation_id", "node", "cycle", "attempt", "occurred_at")
        )
    return derived_id(draft.fields["occurred_at"], identity)


def _find_kind(draft: Draft, verdict: SchemaVerdict | None) -> EventKind:
    if draft.is_cancelled:
        return EventKind.CANCELLED
    if "parse_error_type" in draft.fields:
        return EventKind.PARSE_INVALID
    if verdict is not None and verdict.error_type is not None:
        is_closed = verdict.error_type == ParseErrorType.TRUNCATED and draft.is_unfinished
        return EventKind.CANCELLED if is_closed else EventKind.PARSE_INVALID
    if not draft.is_error:
        return EventKind.SUCCEEDED
    return EventKind.PARSE_INVALID if draft.unread else EventKind.PROVIDER_ERROR


def _fields(
    call: ModelCall, attributes: AttributeMap, resource: AttributeMap, trace_id: str
) -> dict[str, Any]:
    """Return the known wire fields; `failsoft.*` attributes override the others."""
    service = short(resource, "service.name")
    known = {
        "correlation_id": trace_id or None,
        "node": call.node or DEFAULT_NODE,
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

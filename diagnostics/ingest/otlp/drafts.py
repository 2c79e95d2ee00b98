"""Drafts: events before their answers are checked, of spans, log records and posted answers.

1. The kind is the reported one (`failsoft.kind`, `failsoft.parse_error_type`), else the result
   of checking the answer, else the error of the span, else a success.
2. The attempt is the reported one, else 1, so that a repeated export has the same content: the
   real one is derived when the run is over (diagnostics.ingest.span_runs).
3. The id is derived from project, trace, span and slot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from diagnostics.ingest.otlp.answers import REFUSAL, Answer, ModelCall
from diagnostics.ingest.otlp.attributes import OPERATIONS, AttributeMap
from diagnostics.ingest.otlp.call_errors import ENDINGS, NO_ERROR, CallError
from diagnostics.ingest.otlp.request_schemas import (
    answer_schema_of,
    is_structured,
    offers_tools,
    tools_of,
)
from diagnostics.ingest.otlp.telemetry import CallPlace
from diagnostics.ingest.schemas import SchemaVerdict
from failsoft.events import (
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

# The endings whose answer is unusable, whatever it says.
UNUSABLE = frozenset({FinishClass.BLOCK, FinishClass.MALFORMED})
DEFAULT_NODE = "chat"
CALL = "call"
ENDS, ENDLESS = (tuple(OPERATIONS[name]) for name in ("ends", "endless"))
CLOSED = OPERATIONS["closed"]


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
    # Whether the agent says which attempt it was.
    is_numbered: bool = True
    # Schemas in the request: of its tools by name (`tools_of`), and of the answer.
    tools: Mapping[str | None, Any] = field(default_factory=dict, repr=False)
    answer_schema: Any = field(default=None, repr=False)
    is_structured: bool = False
    # Why nothing checked the answer.
    unchecked: UncheckedReason | None = None
    # The event that this one replaces.
    stored_id: UUID | None = None
    # The node of the agent around it, for a call none of whose spans names one.
    agent_node: str = ""

    @property
    def unplaced(self) -> CallPlace | None:
        """The place of a call without an attempt number."""
        return None if self.is_numbered else self.place

    @property
    def correlation_id(self) -> str:
        return str(self.fields.get("correlation_id", ""))

    @property
    def node(self) -> str:
        return self.named_node or DEFAULT_NODE

    @property
    def named_node(self) -> str:
        """Return the node that the call, or the agent around it, names; empty without one."""
        return str(self.fields.get("node") or self.agent_node)

    @property
    def is_of_agent(self) -> bool:
        """Whether the agent around it names its node, which no log record knows."""
        return bool(self.agent_node) and not self.fields.get("node")

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
        if self.is_cancelled or self.is_reported:
            return False
        if self.is_error:
            return bool(self.answer.text or self.answer.calls) or self.ending in UNUSABLE
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
        fields = {"node": draft.node, **draft.fields}
        identity += tuple(
            str(fields.get(name, ""))
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

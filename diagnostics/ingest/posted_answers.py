"""Posted answers as events, by the same code as answers in spans."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from diagnostics.ingest.answer_verdicts import AnswerVerdicts
from diagnostics.ingest.otlp.answers import Answer, ModelCall, read_message
from diagnostics.ingest.otlp.call_errors import CallError
from diagnostics.ingest.otlp.drafts import CALL, Draft, expectations_of, make_event
from diagnostics.ingest.otlp.telemetry import CallPlace, nanoseconds_of
from diagnostics.ingest.schemas import SchemaFaultError, SchemaVerdict, read_schema
from diagnostics.ingest.schemas.reading import MAX_DEPTH, MAX_NODES
from diagnostics.rest.batches import RefusedItem, read_item
from failsoft.answered import ANSWER_PARTS, PostedAnswer
from failsoft.events import PostedEvent, UncheckedReason, describe_errors
from failsoft.json_values import JSON, BoundError, clean_json

# The span attributes with the same meaning.
ATTRIBUTE_NAMES = {
    "tools": "gen_ai.tool.definitions",
    "answer_schema": "gen_ai.request.structured_output_schema",
}
MOST_FAULTS = 5
# What an answer of no run and no project has in the place of both.
NOBODYS: dict[str, JSON] = {
    "event_id": str(UUID(int=0)),
    "name": "graph.answer.answered",
    "occurred_at": "2026-01-01T00:00:00Z",
    "correlation_id": "none",
    "attempt": 1,
}


class NoAnswerError(ValueError):
    """The parts are not those of an answer; the message names them."""


@dataclass(slots=True)
class JudgedAnswers:
    """The events of answers, in order, and the places of those without an attempt number."""

    events: list[PostedEvent | RefusedItem] = field(default_factory=list)
    unplaced: dict[UUID, CallPlace] = field(default_factory=dict)
    # What is wrong with the schemas of the first answers that could not be checked.
    schema_faults: list[dict[str, str]] = field(default_factory=list)


def judge_answers(project_id: int, items: Sequence[dict[str, JSON]]) -> JudgedAnswers:
    """Check answers against the schemas of their nodes; return an event for each."""
    judged = JudgedAnswers()
    answers = [_read(item) for item in items]
    drafts = [
        draft_answer(answer) if isinstance(answer, PostedAnswer) else answer for answer in answers
    ]
    verdicts = AnswerVerdicts(project_id, [draft for draft in drafts if isinstance(draft, Draft)])
    for draft in drafts:
        if isinstance(draft, RefusedItem):
            judged.events.append(draft)
            continue
        draft, verdict = verdicts.judge(draft)
        try:
            event = make_event(draft, project_id, verdict)
        except ValidationError as error:
            judged.events.append(RefusedItem(str(draft.stored_id), describe_errors(error)))
            continue
        judged.events.append(event)
        if draft.unplaced:
            judged.unplaced[event.event_id] = draft.unplaced
        is_unread = event.unchecked is UncheckedReason.NO_SCHEMA and draft.answer_schema is not None
        if is_unread and len(judged.schema_faults) < MOST_FAULTS:
            judged.schema_faults += _faults_of(draft.answer_schema)
    return judged


def _faults_of(schema: Any) -> list[dict[str, str]]:  # noqa: ANN401 - any JSON
    """Return why the schema of a request cannot be read; its paths are in the schema itself."""
    fault: BoundError | SchemaFaultError | None = clean_json(schema, MAX_NODES, MAX_DEPTH)[1]
    try:
        if fault is None:
            read_schema(schema, is_ours=False)
            return []
    except SchemaFaultError as error:
        fault = error
    message = f"this schema checks nothing: {fault.path or 'its root'}: {fault.message}"
    return [{"path": "/answer_schema", "code": fault.code, "message": message}]


def judge_answer(parts: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the verdict on one answer, as an `answered` item without a project gets it.

    Keys: `ok` (null if nothing checked it), `type`, `errors`, `repairs` and `unchecked` (why
    nothing did). Raises NoAnswerError.
    """
    answer = _read({**NOBODYS, **parts})
    if not isinstance(answer, PostedAnswer):
        raise NoAnswerError(
            "; ".join(f"{error['path']}: {error['message']}" for error in answer.errors)
        )
    draft = draft_answer(answer)
    draft, verdict = AnswerVerdicts(None, [draft]).judge(draft)
    judged = verdict or SchemaVerdict(None)
    return {
        "ok": None if draft.unchecked else judged.error_type is None,
        "type": judged.error_type,
        "errors": [error.model_dump() for error in judged.errors],
        "repairs": [repair.model_dump() for repair in judged.repairs],
        "unchecked": draft.unchecked,
    }


def draft_answer(answer: PostedAnswer) -> Draft:
    parts = answer.model_dump(include=set(ANSWER_PARTS), exclude_unset=True)
    left_out = {*ANSWER_PARTS, "event_id", "name", "error"}
    fields = answer.model_dump(by_alias=True, exclude_none=True, exclude=left_out)
    call = ModelCall(
        finish_reason=answer.finish_reason,
        answer=read_message(parts),
        output_tokens=answer.output_tokens,
    )
    posted = call.answer or Answer()
    request_attributes = {
        key: parts[name] for name, key in ATTRIBUTE_NAMES.items() if parts.get(name)
    }
    started_ns = nanoseconds_of(answer.occurred_at) - 1_000_000 * (answer.latency_ms or 0)
    return Draft(
        trace_id="",
        span_id="",
        slot=CALL,
        kind=None,
        fields=fields,
        # Nothing is left out: what is not there is empty.
        answer=posted if posted.calls else posted._replace(text=posted.text or ""),
        error=CallError(answer.error).named_by(call),
        is_error=answer.error is not None or call.broke_off,
        # Of no trace: it is only known when the call went on.
        place=CallPlace("", "", "", started_ns, 0, ""),
        is_numbered=answer.attempt is not None,
        stored_id=answer.event_id,
        **expectations_of(call, request_attributes),
    )


def _read(item: Mapping[str, JSON]) -> PostedAnswer | RefusedItem:
    """Read one item; the answer is bounded by its size, not by its number of values."""
    parts = {name: item[name] for name in ANSWER_PARTS & item.keys()}
    others = {name: value for name, value in item.items() if name not in parts}
    return read_item(others, PostedAnswer, parts)

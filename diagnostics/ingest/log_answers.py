"""Answers in log records: their verdicts wait for the spans of the calls, or correct them.

A span is exported seconds after the log records of its answer. A verdict whose span does not
arrive becomes an event.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from django.db import transaction
from django.db.models import Q, QuerySet

from diagnostics import clock
from diagnostics.ingest.agent_schemas import schemas_for
from diagnostics.ingest.answer_verdicts import log_sources
from diagnostics.ingest.joined_calls import (
    ANSWERED,
    delete_stored,
    events_of_calls,
    forget_old_calls,
    key_of,
)
from diagnostics.ingest.models import SpanCall, SpanVerdict
from diagnostics.ingest.otlp.drafts import CALL, DEFAULT_NODE, Draft
from diagnostics.ingest.recording import record, unplaced_of
from diagnostics.ingest.schemas import SchemaVerdict
from diagnostics.redaction.event_rows import redact_content
from diagnostics.redaction.rules import redactor_of
from diagnostics.store.deadlines import try_each_project
from failsoft.events import ParseErrorType, PostedEvent, event_name, split_name

Row = TypeVar("Row")
PATIENCE = timedelta(minutes=2)
SETTLED_AT_ONCE, SETTLE_SECONDS = 500, 20.0
KEEP_TAKEN = timedelta(days=1)
# An event; once its span has taken it, the service that reports answers so is left.
WAITING = Q(content__has_key="name")
# These hold whatever the schema.
SCHEMALESS = frozenset(
    {ParseErrorType.EMPTY_OUTPUT, ParseErrorType.TRUNCATED, ParseErrorType.REFUSAL}
)
VERDICT_FIELDS = (
    *("parse_error_type", "validation_errors", "repairs", "raw_output_preview"),
    *("schema", "schema_version"),
)


class LoggedCall(NamedTuple):
    """The call that a log record is about.

    A stream is read, and its record written, outside of its span: the response names the call.
    """

    trace_id: str
    span_id: str
    response_id: str | None

    def in_rows(self, rows: Mapping[tuple[str, str], Row]) -> Row | None:
        """Return the row of its span, else of its response in the same trace."""
        row = rows.get((self.trace_id, self.span_id))
        return row or rows.get((self.trace_id, self.response_id or ""))


def call_of(answer: Draft | SpanVerdict) -> LoggedCall:
    fields = answer.fields if isinstance(answer, Draft) else answer.content
    response_id = fields.get("attributes", {}).get("response_id")
    return LoggedCall(answer.trace_id, answer.span_id, response_id)


def known_calls(project_id: int, calls: Iterable[LoggedCall]) -> dict[LoggedCall, SpanCall | None]:
    """Return the span, if stored, of each call that a log record is about."""
    keys = {call: call._replace(response_id=key_of(call.response_id or "")) for call in calls}
    stored = SpanCall.objects.filter(
        project_id=project_id, trace_id__in={call.trace_id for call in keys}
    )
    rows = {
        (row.trace_id, name): row for row in stored for name in (row.span_id, str(row.response))
    }
    return {call: key.in_rows(rows) for call, key in keys.items()}


def delete_success(row: SpanCall) -> dict[str, Any] | None:
    """Delete the success of a span whose answer arrived later, in the caller's transaction.

    Return its fields; None if the answer was known, or its event is no success.
    """
    if row.weight >= ANSWERED:
        return None
    fields = delete_stored(row.project_id, row.event_id)
    if fields is not None:
        calls = SpanCall.objects.filter(project_id=row.project_id, event_id=row.event_id)
        calls.update(weight=ANSWERED, is_joined=True)
    return fields


def nodes_of_spans(project_id: int, drafts: Iterable[Draft]) -> dict[LoggedCall, str]:
    """Return the node of the span, if stored, of each answer in a log record."""
    known = known_calls(project_id, map(call_of, drafts))
    events = events_of_calls(project_id, filter(None, known.values()))
    nodes = dict(events.values_list("event_id", "node"))
    return {call: nodes.get(row.event_id, "") for call, row in known.items() if row}


def join_verdicts(project_id: int, drafts: list[Draft]) -> list[Draft]:
    """Merge verdicts of log records into the drafts of their spans, once."""
    silent = {call_of(draft) for draft in drafts if draft.slot == CALL and draft.kind is None}
    waiting = SpanVerdict.objects.filter(
        WAITING, project_id=project_id, trace_id__in={call.trace_id for call in silent}
    )
    stored = waiting.select_for_update().order_by("pk")
    by_name = {(row.trace_id, name): row for row in stored for name in call_of(row)[1:] if name}
    rows = {call: row for call in silent if (row := call.in_rows(by_name)) is not None}
    if not rows:
        return drafts
    # Kept empty for a day, so that log records exported again are not counted twice.
    nodes = {draft.node for draft in drafts} | {_node_of(row) for row in rows.values()}
    registered = set(schemas_for(project_id, nodes))
    joined = [_with_verdict(draft, rows.get(call_of(draft)), registered) for draft in drafts]
    for row in rows.values():
        row.content = {"source": row.content["source"]}
    SpanVerdict.objects.bulk_update(rows.values(), ["content"])
    return joined


def _node_of(row: SpanVerdict) -> str:
    return split_name(row.content["name"])[0]


def _with_verdict(draft: Draft, row: SpanVerdict | None, registered: set[str]) -> Draft:
    if (
        row is None
        or draft.slot != CALL
        or "parse_error_type" in draft.fields
        or draft.answer.is_known
        or _is_of_other_schema(draft, row, registered)
    ):
        return draft
    verdict_fields = {name: row.content[name] for name in VERDICT_FIELDS}
    known = {name: value for name, value in verdict_fields.items() if value is not None}
    return replace(draft, fields={**draft.fields, **known})


def _is_of_other_schema(draft: Draft, row: SpanVerdict, registered: set[str]) -> bool:
    """Whether a verdict was made without the node of the agent, one of the two having a schema.

    The text of the answer is not kept, so that nothing can check it again.
    """
    nodes = {draft.node, _node_of(row)}
    is_other = draft.is_of_agent and len(nodes) == 2 and not registered.isdisjoint(nodes)
    return is_other and row.content["parse_error_type"] not in SCHEMALESS


@dataclass(slots=True)
class KeptVerdicts:
    """How many verdicts wait, corrected a span, or add nothing to one."""

    waiting: int = 0
    corrected: int = 0
    ignored: int = 0


def keep_verdicts(
    project_id: int, judged: Sequence[tuple[Draft, PostedEvent | None, SchemaVerdict | None]]
) -> KeptVerdicts:
    """Keep verdicts until their spans arrive; spans stored already are corrected."""
    kept, rows, late = KeptVerdicts(), list[SpanVerdict](), list[PostedEvent]()
    known = known_calls(project_id, (call_of(draft) for draft, _, _ in judged))
    events = events_of_calls(project_id, filter(None, known.values()))
    unchecked = set(events.filter(unchecked__isnull=False).values_list("event_id", flat=True))
    sources = log_sources(project_id)
    for draft, event, verdict in judged:
        span = known[call_of(draft)]
        is_first = draft.fields.get("source") not in sources
        is_told = verdict is not None and bool(verdict.error_type or verdict.repairs)
        # Any other valid answer is reported by its span. The first one may cross it.
        is_missed = is_first if span is None else span.event_id in unchecked
        if verdict is None or not (is_told or is_missed):
            kept.ignored += 1
        elif event is not None:
            content, _ = redact_content(event, redactor_of(project_id))
            if span is None:
                rows.append(_verdict_row(project_id, draft, content))
                kept.waiting += 1
            elif (replacing := _corrected_event(span, content)) is not None:
                late.append(replacing)
                kept.corrected += 1
                # Marks for a day that log records carry the answers of this service.
                taken = {"source": content["source"]}
                rows += [_verdict_row(project_id, draft, taken)] if is_first else []
            sources |= {rows[-1].content["source"]} if rows else set()
    SpanVerdict.objects.bulk_create(rows, ignore_conflicts=True)
    _record_late(project_id, late)
    return kept


def _verdict_row(project_id: int, draft: Draft, content: dict[str, Any]) -> SpanVerdict:
    row = SpanVerdict(project_id=project_id, trace_id=draft.trace_id, span_id=draft.span_id)
    row.received_at, row.content = clock.now(), content
    return row


def settle_verdicts() -> int:
    """Turn verdicts whose span has not arrived within 2 minutes into events; return how many."""
    now = clock.now()
    forget_old_calls()
    SpanVerdict.objects.filter(~WAITING, received_at__lt=now - KEEP_TAKEN).delete()
    old = SpanVerdict.objects.filter(WAITING, received_at__lt=now - PATIENCE)
    return try_each_project("verdicts", old, _settle_old, SETTLE_SECONDS)


@transaction.atomic
def _settle_old(old: QuerySet[SpanVerdict], project_id: int) -> int:
    unclaimed = old.filter(project_id=project_id).order_by("pk")
    rows = list(unclaimed.select_for_update(skip_locked=True)[:SETTLED_AT_ONCE])
    _record_late(project_id, list(_due_events(project_id, rows)))
    SpanVerdict.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)


def _due_events(project_id: int, rows: list[SpanVerdict]) -> Iterator[PostedEvent]:
    """Yield the events of verdicts; if the span has arrived since, its event is replaced."""
    known = known_calls(project_id, map(call_of, rows))
    for row in rows:
        span = known[call_of(row)]
        if span is None:
            # A valid answer is reported by its span alone.
            if row.content["parse_error_type"] or row.content["repairs"]:
                yield PostedEvent.model_validate(row.content)
        elif (event := _corrected_event(span, row.content)) is not None:
            yield event


def _corrected_event(span: SpanCall, content: dict[str, Any]) -> PostedEvent | None:
    """Return the event of a span, corrected by the answer of a log record."""
    stored = delete_success(span)
    if stored is None:
        return None
    kind = split_name(content["name"])[1]
    answer_fields = {name: content[name] for name in ("attributes", *VERDICT_FIELDS)}
    name = event_name(stored.pop("node", DEFAULT_NODE), kind)
    # The attempt number is derived later.
    wire = {"attempt": 1, **stored, **answer_fields, "name": name, "event_id": span.event_id}
    return PostedEvent.model_validate(wire)


def _record_late(project_id: int, events: Sequence[PostedEvent]) -> None:
    """Store corrected events; a run whose attempts were derived becomes due again."""
    unplaced = unplaced_of(project_id, (event.event_id for event in events))
    record(project_id, events, unplaced=unplaced)

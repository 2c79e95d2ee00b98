"""Telemetry as events: drafts, answer checks within a budget, storage, a receipt."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Q, QuerySet
from pydantic import ValidationError

from diagnostics import clock
from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.answer_verdicts import AnswerVerdicts, log_sources
from diagnostics.ingest.assessments import link_assessments, record_evaluations
from diagnostics.ingest.item_warnings import (
    UncheckedAnswers,
    UncheckedCounts,
    count_unchecked,
    rows_of,
    sentences_of,
)
from diagnostics.ingest.joined_calls import (
    call_of,
    call_of_row,
    delete_success,
    forget_old_calls,
    join_calls,
    known_calls,
    unchecked_events,
)
from diagnostics.ingest.models import SpanCall, SpanVerdict
from diagnostics.ingest.otlp.attributes import OWN_ATTEMPT, OWN_PREFIX, count, count_unknown, short
from diagnostics.ingest.otlp.evaluations import AnswerEvaluation, evaluations_of
from diagnostics.ingest.otlp.mapping import (
    ANSWER,
    CALL,
    LATEST_NS,
    Draft,
    NoEventError,
    draft_log,
    draft_span,
    is_strange,
    make_event,
)
from diagnostics.ingest.otlp.telemetry import LogRecord, Span, UnreadItem
from diagnostics.ingest.quota_rules import count_sampled_out
from diagnostics.ingest.quotas import admit, note_sampled_out
from diagnostics.ingest.recording import RecordStatus, record, record_calls, unplaced_of
from diagnostics.ingest.rejects import MOST_ITEMS, SEEN_BYTES, Refusal
from diagnostics.ingest.schemas import SchemaVerdict
from diagnostics.ingest.sibling_models import name_models
from diagnostics.ingest.span_runs import end_runs, is_agent_call, keep_agent_calls
from diagnostics.redaction.event_rows import redact_content
from diagnostics.redaction.rules import redactor_of
from diagnostics.store.deadlines import try_each_project
from failsoft.events import PostedEvent, UncheckedReason, describe_errors, event_name, split_name

CHUNK = 1000
MAX_REASONS = 3
ITEM = "otlp_item"
# A node without a schema may be meant: exporters log the message with every batch.
SAID = (UncheckedReason.NO_ANSWER, UncheckedReason.OVER_BUDGET)
NOT_UNDERSTOOD = (
    "{} spans name a model but are not a known call: set gen_ai.operation.name to chat,"
    " or failsoft.kind"
)
UNCLEAR = (
    "{} evaluations whose gen_ai.evaluation.score.label says neither good nor bad: set"
    " failsoft.verdict to one of these"
)
# A span is exported seconds after the log records of its answer.
PATIENCE = timedelta(minutes=2)
SETTLED_AT_ONCE, SETTLE_SECONDS = 500, 20.0
KEEP_TAKEN = timedelta(days=1)
# An event; once its span has taken it, the service that reports answers so is left.
WAITING = Q(content__has_key="name")
VERDICT_FIELDS = (
    *("parse_error_type", "validation_errors", "repairs", "raw_output_preview"),
    *("schema", "schema_version"),
)

Item = TypeVar("Item", Span, LogRecord)


@dataclass(slots=True)
class Receipt:
    """The results of the items of one request.

    An item can be several events. `known` were stored before with other content: a checked
    answer, for instance, where there was no schema the first time.
    """

    items: int = 0
    accepted: int = 0
    duplicates: int = 0
    known: int = 0
    # Another span reported the same call: two instrumentations.
    joined: int = 0
    waiting: int = 0
    ignored: int = 0
    rejected: int = 0
    # Calls whose answer nothing checked.
    unchecked: UncheckedCounts = field(default_factory=Counter)
    # Items that name a model but are not a known kind of call.
    not_understood: int = 0
    # Evaluations whose label is neither good nor bad.
    unclear: int = 0
    dropped_attributes: int = 0
    time_marks: Counter[str] = field(default_factory=Counter)
    # Runs of the events, whether new or known.
    runs: set[str] = field(default_factory=set)
    refusals: list[Refusal] = field(default_factory=list)

    def reject(self, place: int, reason: str, item: Span | LogRecord | None) -> None:
        self.rejected += 1
        if len(self.refusals) < MOST_ITEMS:
            self.refusals.append(_describe_refusal(place, reason, item))

    def count(self, statuses: Sequence[str]) -> None:
        self.accepted += statuses.count(RecordStatus.CREATED)
        self.duplicates += statuses.count(RecordStatus.DUPLICATE)
        self.known += statuses.count(RecordStatus.CONFLICT)

    @property
    def said_unchecked(self) -> list[UncheckedAnswers]:
        """The unchecked answers that the sender should know of, the largest number first."""
        return [row for row in rows_of(self.unchecked) if row.reason in SAID]

    @property
    def message(self) -> str:
        """Return what the sender should know; empty if nothing was wrong."""
        shown = self.refusals[:MAX_REASONS]
        sentences = [f"item {refusal.index}: {refusal.message}" for refusal in shown]
        if self.rejected > len(shown):
            sentences.append(f"and {self.rejected - len(shown)} more rejected")
        sentences += [row.sentence for row in self.said_unchecked]
        sentences += [
            sentence.format(number)
            for number, sentence in ((self.not_understood, NOT_UNDERSTOOD), (self.unclear, UNCLEAR))
            if number
        ]
        return "; ".join([*sentences, *sentences_of(self.time_marks).values()])


def receive_spans(
    project_id: int, spans: Iterable[Span | UnreadItem], key: ApiKey | None = None
) -> Receipt:
    """Store the events of spans, each once, in one transaction; return after commit.

    They count against the quota of a key, if one sent them. Raises QuotaExceededError before
    anything is stored.
    """
    receipt, agents, ended = Receipt(), list[Span](), set[str]()
    evaluations = list[AnswerEvaluation]()
    drafts = list(
        _draft_items(_note_agents(spans, agents, ended), draft_span, receipt, evaluations)
    )
    keep_share = admit(key, max(len(drafts) + len(evaluations), 1)) if key else 1.0
    places = [item.draft.place for item in drafts if item.draft.place is not None]
    judge = _AnswerJudge(project_id, drafts, receipt)
    # Lock the rows of runs in one order, to avoid deadlocks.
    drafts.sort(key=lambda item: item.correlation_id)
    with transaction.atomic():
        drafts = _join_verdicts(project_id, drafts)
        # One draft per call: one that another span reported adds no event.
        joined = join_calls(project_id, name_models(project_id, [item.draft for item in drafts]))
        receipt.joined += joined.repeated
        drafts = [
            replace(item, draft=joined.drafts[index])
            for index, item in enumerate(drafts)
            if index in joined.drafts
        ]
        _store(drafts, judge, key, keep_share)
        traces = {place.trace_id for place in places}
        responses = {place.response_id for place in places if place.response_id}
        link_assessments(project_id, traces, responses)
        _keep_evaluations(project_id, evaluations, receipt)
        keep_agent_calls(project_id, agents)
        ended_runs = {item.correlation_id for item in drafts if item.draft.trace_id in ended}
        end_runs(project_id, ended_runs | ended)
    return receipt


def _note_agents(
    spans: Iterable[Span | UnreadItem], agents: list[Span], ended: set[str]
) -> Iterator[Span | UnreadItem]:
    """Yield the spans; collect agent calls, and the traces whose root span is among them."""
    for span in spans:
        if isinstance(span, Span):
            if not span.parent_id:
                ended.add(span.trace_id)
            if is_agent_call(span) and 0 < span.started_ns <= span.ended_ns < LATEST_NS:
                agents.append(span)
        yield span


def receive_logs(
    project_id: int, records: Iterable[LogRecord | UnreadItem], key: ApiKey | None = None
) -> Receipt:
    """Store the events of log records, and keep verdicts for spans that have not arrived.

    As `receive_spans`.
    """
    receipt, evaluations = Receipt(), list[AnswerEvaluation]()
    drafts = list(_draft_items(records, draft_log, receipt, evaluations))
    keep_share = admit(key, max(len(drafts) + len(evaluations), 1)) if key else 1.0
    judge = _AnswerJudge(project_id, drafts, receipt)
    complete = [item for item in drafts if item.draft.slot != ANSWER]
    answers = [item for item in drafts if item.draft.slot == ANSWER]
    with transaction.atomic():
        _store(complete, judge, key, keep_share)
        _keep_verdicts(project_id, answers, judge)
        _keep_evaluations(project_id, evaluations, receipt)
    return receipt


def _keep_evaluations(
    project_id: int, evaluations: Sequence[AnswerEvaluation], receipt: Receipt
) -> None:
    clear = [evaluation for evaluation in evaluations if evaluation.verdict]
    receipt.unclear += len(evaluations) - len(clear)
    statuses = record_evaluations(project_id, clear)
    receipt.count(statuses)
    receipt.ignored += len(clear) - len(statuses)


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
    known = known_calls(project_id, map(call_of_row, rows))
    for row in rows:
        span = known[call_of_row(row)]
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
    name = event_name(stored.pop("node"), kind)
    # The attempt number is derived later.
    wire = {"attempt": 1, **stored, **answer_fields, "name": name, "event_id": span.event_id}
    return PostedEvent.model_validate(wire)


def _record_late(project_id: int, events: Sequence[PostedEvent]) -> None:
    """Store corrected events; a run whose attempts were derived becomes due again."""
    unplaced = unplaced_of(project_id, (event.event_id for event in events))
    record(project_id, events, unplaced=unplaced)


@dataclass(frozen=True, slots=True)
class _DraftedItem:
    place: int
    item: Span | LogRecord
    draft: Draft

    @property
    def correlation_id(self) -> str:
        return str(self.draft.fields.get("correlation_id", ""))

    @property
    def unplaced(self) -> Span | None:
        """The span of a call without an attempt number."""
        if self.draft.slot != CALL or isinstance(self.item, LogRecord):
            return None
        item, place = self.item, self.draft.place
        attributes = item.attributes if OWN_ATTEMPT in item.attributes else item.resource
        if count(attributes, OWN_ATTEMPT) is not None:
            return None
        return replace(item, started_ns=place.started_ns) if place else item


def _draft_items(
    items: Iterable[Item | UnreadItem],
    draft: Callable[[Item], list[Draft]],
    receipt: Receipt,
    evaluations: list[AnswerEvaluation],
) -> Iterator[_DraftedItem]:
    """Yield the drafts of every item; collect evaluations, and count refused items."""
    for place, item in enumerate(items):
        receipt.items += 1
        if isinstance(item, UnreadItem):
            receipt.reject(place, item.reason, None)
            continue
        receipt.dropped_attributes += item.dropped + count_unknown(item.attributes)
        try:
            drafts, found_evaluations = draft(item), evaluations_of(item)
        except NoEventError as error:
            receipt.reject(place, str(error), item)
            continue
        evaluations += found_evaluations
        receipt.ignored += not (drafts or found_evaluations)
        receipt.not_understood += not (drafts or found_evaluations) and is_strange(item)
        for drafted in drafts:
            yield _DraftedItem(place, item, drafted)


def _describe_refusal(place: int, reason: str, item: Span | LogRecord | None) -> Refusal:
    """Describe a refused item by its ids and our own attributes, without any model output."""
    if item is None:
        return Refusal(ITEM, "", reason, "", 0, place)
    details = {
        "trace_id": item.trace_id,
        "span_id": item.span_id,
        "name": item.name,
        **{name: value for name, value in item.attributes.items() if name.startswith(OWN_PREFIX)},
    }
    text = json.dumps(details, ensure_ascii=False)[:SEEN_BYTES]
    source = short(item.resource, "service.name")
    return Refusal(ITEM, "", reason, text, len(text), place, source=source)


class _AnswerJudge:
    """Checks answers against the schemas of their nodes, within a time budget."""

    def __init__(self, project_id: int, drafted: Sequence[_DraftedItem], receipt: Receipt) -> None:
        self._verdicts = AnswerVerdicts(project_id, [item.draft for item in drafted])
        self.project_id = project_id
        self.receipt = receipt

    def make_event(self, drafted: _DraftedItem) -> tuple[PostedEvent | None, SchemaVerdict | None]:
        """Return the event of a draft; None if its fields are out of bounds."""
        draft, verdict = self._verdicts.judge(drafted.draft)
        try:
            return make_event(draft, self.project_id, verdict), verdict
        except ValidationError as error:
            faults = describe_errors(error)
            reason = ", ".join(f"{fault['path']}: {fault['message']}" for fault in faults)
            self.receipt.reject(drafted.place, reason, drafted.item)
            return None, verdict


def _store(
    drafts: Iterable[_DraftedItem], judge: _AnswerJudge, key: ApiKey | None, keep_share: float
) -> None:
    drafted = ((item, judge.make_event(item)[0]) for item in drafts)
    events = ((item, event) for item, event in drafted if event is not None)
    while chunk := list(islice(events, CHUNK)):
        posted = [event for _, event in chunk]
        judge.receipt.runs.update(event.correlation_id for event in posted)
        unplaced = {event.event_id: span for item, event in chunk if (span := item.unplaced)}
        recorded = record_calls(judge.project_id, posted, keep_share, unplaced)
        created = [item.index for item in recorded if item.status is RecordStatus.CREATED]
        judge.receipt.count([item.status for item in recorded])
        judge.receipt.unchecked.update(count_unchecked(posted[index] for index in created))
        judge.receipt.time_marks.update(item.time_mark for item in recorded if item.time_mark)
        if key and keep_share < 1.0:
            note_sampled_out(key, count_sampled_out(posted, keep_share))


def _join_verdicts(project_id: int, drafts: list[_DraftedItem]) -> list[_DraftedItem]:
    """Merge verdicts of log records into the drafts of their spans, once."""
    drafted = (item.draft for item in drafts)
    silent = {call_of(draft) for draft in drafted if draft.slot == CALL and draft.kind is None}
    waiting = SpanVerdict.objects.filter(
        WAITING, project_id=project_id, trace_id__in={call.trace_id for call in silent}
    )
    stored = waiting.select_for_update().order_by("pk")
    by_name = {(row.trace_id, name): row for row in stored for name in call_of_row(row)[1:] if name}
    rows = {call: row for call in silent if (row := call.in_rows(by_name)) is not None}
    if not rows:
        return drafts
    # Kept empty for a day, so that log records exported again are not counted twice.
    joined = [
        replace(item, draft=_with_verdict(item.draft, rows.get(call_of(item.draft))))
        for item in drafts
    ]
    for row in rows.values():
        row.content = {"source": row.content["source"]}
    SpanVerdict.objects.bulk_update(rows.values(), ["content"])
    return joined


def _with_verdict(draft: Draft, row: SpanVerdict | None) -> Draft:
    if (
        row is None
        or draft.slot != CALL
        or "parse_error_type" in draft.fields
        or draft.answer.is_known
    ):
        return draft
    verdict_fields = {name: row.content[name] for name in VERDICT_FIELDS}
    known = {name: value for name, value in verdict_fields.items() if value is not None}
    return replace(draft, fields={**draft.fields, **known})


def _keep_verdicts(project_id: int, drafts: list[_DraftedItem], judge: _AnswerJudge) -> None:
    """Keep verdicts until their spans arrive; spans stored already are corrected."""
    rows, late = list[SpanVerdict](), list[PostedEvent]()
    known = known_calls(project_id, (call_of(item.draft) for item in drafts))
    unchecked = unchecked_events(project_id, filter(None, known.values()))
    sources = log_sources(project_id)
    for item in drafts:
        event, verdict = judge.make_event(item)
        span = known[call_of(item.draft)]
        source = item.draft.fields.get("source")
        is_first = source not in sources
        is_told = verdict is not None and bool(verdict.error_type or verdict.repairs)
        # Any other valid answer is reported by its span. The first one may cross it.
        is_missed = is_first if span is None else span.event_id in unchecked
        if verdict is None or not (is_told or is_missed):
            judge.receipt.ignored += 1
        elif event is not None:
            content, _ = redact_content(event, redactor_of(project_id))
            if span is None:
                rows.append(_verdict_row(project_id, item.draft, content))
                judge.receipt.waiting += 1
            elif (replacing := _corrected_event(span, content)) is not None:
                late.append(replacing)
                judge.receipt.joined += 1
                # Marks for a day that log records carry the answers of this service.
                taken = {"source": content["source"]}
                rows += [_verdict_row(project_id, item.draft, taken)] if is_first else []
            sources |= {rows[-1].content["source"]} if rows else set()
    SpanVerdict.objects.bulk_create(rows, ignore_conflicts=True)
    _record_late(project_id, late)


def _verdict_row(project_id: int, draft: Draft, content: dict[str, Any]) -> SpanVerdict:
    row = SpanVerdict(project_id=project_id, trace_id=draft.trace_id, span_id=draft.span_id)
    row.received_at, row.content = clock.now(), content
    return row

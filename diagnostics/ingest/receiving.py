"""Telemetry as events: drafted, its answers checked within a budget, stored, accounted for."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from django.db import transaction
from pydantic import ValidationError

from diagnostics import clock
from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.answer_verdicts import AnswerVerdicts, UncheckedError
from diagnostics.ingest.assessments import link_assessments, record_evaluations
from diagnostics.ingest.joined_calls import (
    forget_old_calls,
    join_calls,
    spans_told,
    take_out_success,
)
from diagnostics.ingest.models import SpanCall, SpanVerdict
from diagnostics.ingest.otlp.attributes import short
from diagnostics.ingest.otlp.evaluations import AnswerEvaluation, evaluations_of
from diagnostics.ingest.otlp.failsoft_attributes import count_unknown, is_own, read_fields
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
from diagnostics.ingest.otlp.telemetry import LogRecord, Span
from diagnostics.ingest.quota_rules import count_sampled_out
from diagnostics.ingest.quotas import admit, note_sampled_out
from diagnostics.ingest.recording import Recorded, RecordStatus, record
from diagnostics.ingest.rejects import MOST_ITEMS, SEEN_BYTES, Refusal
from diagnostics.ingest.schemas import SchemaVerdict
from diagnostics.ingest.span_runs import (
    end_runs,
    is_agent_call,
    keep_agent_calls,
    record_calls,
    unplaced_of,
)
from diagnostics.redaction.event_rows import redact_content
from diagnostics.redaction.rules import redactor_of
from failsoft.events import PostedEvent, describe_errors, event_name, split_name

CHUNK = 1000
MAX_REASONS = 3
ITEM = "otlp_item"
UNANSWERED = (
    "{} calls without the text of their answer, which has a schema: switch content capture on"
    " (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY)"
)
NOT_UNDERSTOOD = (
    "{} spans name a model but are not a known call: set gen_ai.operation.name to chat,"
    " or failsoft.kind"
)
UNCLEAR = (
    "{} evaluations whose gen_ai.evaluation.score.label says neither good nor bad: set"
    " failsoft.verdict to one of these"
)
TOO_LARGE = "more attribute values, or bytes, than one may have"
# A span is exported seconds after the log records of its answer.
PATIENCE = timedelta(minutes=2)
SETTLED_AT_ONCE = 500
KEEP_TAKEN = timedelta(days=1)
TAKEN: dict[str, Any] = {}
VERDICT_FIELDS = (
    "parse_error_type",
    "validation_errors",
    "repairs",
    "raw_output_preview",
    "schema",
    "schema_version",
)

Item = TypeVar("Item", Span, LogRecord)


@dataclass(slots=True)
class Receipt:
    """What became of the items of one request.

    An item can be several events. `known` were stored before with other content: a checked
    answer, for instance, where there was no schema the first time.
    """

    items: int = 0
    accepted: int = 0
    duplicates: int = 0
    known: int = 0
    # Told by another span already: two instrumentations, one call.
    joined: int = 0
    waiting: int = 0
    ignored: int = 0
    rejected: int = 0
    not_judged: int = 0
    # Calls whose answer would be checked, if it were told.
    unanswered: int = 0
    # What names a model and is no call that is known.
    not_understood: int = 0
    # Evaluations of answers that say neither good nor bad.
    unclear: int = 0
    dropped_attributes: int = 0
    # Of the events, known or not.
    runs: set[str] = field(default_factory=set)
    refusals: list[Refusal] = field(default_factory=list)

    def reject(self, place: int, reason: str, item: Span | LogRecord | None) -> None:
        """Count a refused item and describe the first ones."""
        self.rejected += 1
        if len(self.refusals) < MOST_ITEMS:
            self.refusals.append(_refuse(place, reason, item))

    @property
    def message(self) -> str:
        """Say what the sender should know; empty when all went well."""
        shown = self.refusals[:MAX_REASONS]
        told = [f"item {refusal.index}: {refusal.message}" for refusal in shown]
        if self.rejected > len(shown):
            told.append(f"and {self.rejected - len(shown)} more rejected")
        if self.not_judged:
            told.append(
                f"{self.not_judged} answers were stored without being checked: "
                "they take more time than one request has"
            )
        told += [
            says.format(n)
            for n, says in (
                (self.unanswered, UNANSWERED),
                (self.not_understood, NOT_UNDERSTOOD),
                (self.unclear, UNCLEAR),
            )
            if n
        ]
        return "; ".join(told)


@dataclass(frozen=True, slots=True)
class Intake:
    """Whose telemetry it is: what a quota admits of it, and where left-out previews are counted."""

    project_id: int
    admit: Callable[[int], float] = field(default=lambda _count: 1.0)
    note_sampled_out: Callable[[int], None] = field(default=lambda _count: None)


def receive_spans(key: ApiKey, spans: Iterable[Span | None]) -> Receipt:
    """Store the events of spans, each once, in one transaction; an answer after commit.

    Raises QuotaExceededError before anything is stored.
    """
    return store_spans(_intake_of(key), spans)


def receive_logs(key: ApiKey, records: Iterable[LogRecord | None]) -> Receipt:
    """Store what log records tell by themselves, and keep verdicts for spans to come.

    Raises QuotaExceededError before anything is stored.
    """
    return store_logs(_intake_of(key), records)


def _intake_of(key: ApiKey) -> Intake:
    return Intake(key.project_id, partial(admit, key), partial(note_sampled_out, key))


def store_spans(intake: Intake, spans: Iterable[Span | None]) -> Receipt:
    """Store the events of spans as `receive_spans` does, whoever sends them."""
    receipt, agents, ended = Receipt(), list[Span](), set[str]()
    found = list[AnswerEvaluation]()
    drafts = list(_drafted(_watched(spans, agents, ended), draft_span, receipt, found))
    keep_share = intake.admit(max(len(drafts) + len(found), 1))
    places = [made.draft.place for made in drafts if made.draft.place is not None]
    judging = _Judging(intake.project_id, drafts, receipt)
    # Chunks of one transaction meet the rows of runs in one order.
    drafts.sort(key=lambda made: made.correlation_id)
    with transaction.atomic():
        drafts = _join_calls(_join_verdicts(intake.project_id, drafts), intake.project_id, receipt)
        _store(intake, drafts, judging, keep_share)
        traces = {place.trace_id for place in places}
        responses = {place.response_id for place in places if place.response_id}
        link_assessments(intake.project_id, traces, responses)
        _keep_evaluations(intake.project_id, found, receipt)
        keep_agent_calls(intake.project_id, agents)
        over = {made.correlation_id for made in drafts if made.draft.trace_id in ended}
        end_runs(intake.project_id, over | ended)
    if receipt.unanswered and _tells_by_logs(intake.project_id):
        receipt.unanswered = 0
    return receipt


def _watched(
    spans: Iterable[Span | None], agents: list[Span], ended: set[str]
) -> Iterator[Span | None]:
    """Pass spans on; note agent calls, and the traces whose root span is among them."""
    for span in spans:
        if span is not None:
            if not span.parent_id:
                ended.add(span.trace_id)
            if is_agent_call(span) and 0 < span.started_ns <= span.ended_ns < LATEST_NS:
                agents.append(span)
        yield span


def store_logs(intake: Intake, records: Iterable[LogRecord | None]) -> Receipt:
    """Store what log records tell as `receive_logs` does, whoever sends them."""
    receipt, found = Receipt(), list[AnswerEvaluation]()
    drafts = list(_drafted(records, draft_log, receipt, found))
    keep_share = intake.admit(max(len(drafts) + len(found), 1))
    judging = _Judging(intake.project_id, drafts, receipt)
    whole = [made for made in drafts if made.draft.slot != ANSWER]
    answers = [made for made in drafts if made.draft.slot == ANSWER]
    with transaction.atomic():
        _store(intake, whole, judging, keep_share)
        _keep_verdicts(intake.project_id, answers, judging)
        _keep_evaluations(intake.project_id, found, receipt)
    return receipt


def _keep_evaluations(project_id: int, found: Sequence[AnswerEvaluation], receipt: Receipt) -> None:
    clear = [one for one in found if one.verdict]
    receipt.unclear += len(found) - len(clear)
    said = record_evaluations(project_id, clear)
    receipt.accepted += said.count(RecordStatus.CREATED)
    receipt.duplicates += said.count(RecordStatus.DUPLICATE)
    receipt.known += said.count(RecordStatus.CONFLICT)
    receipt.ignored += len(clear) - len(said)


def settle_verdicts() -> int:
    """Make events of verdicts whose span has not come in 2 minutes; returns how many."""
    now = clock.now()
    forget_old_calls()
    SpanVerdict.objects.filter(received_at__lt=now - KEEP_TAKEN, content=TAKEN).delete()
    old = SpanVerdict.objects.filter(received_at__lt=now - PATIENCE)
    left = old.exclude(content=TAKEN).order_by("pk")
    with transaction.atomic():
        rows = list(left.select_for_update(skip_locked=True)[:SETTLED_AT_ONCE])
        for project_id in {row.project_id for row in rows}:
            mine = [row for row in rows if row.project_id == project_id]
            _record_told_later(project_id, list(_settled(project_id, mine)))
        SpanVerdict.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)


def _settled(project_id: int, rows: list[SpanVerdict]) -> Iterator[PostedEvent]:
    """Return the events of verdicts; one whose span was stored meanwhile replaces its event."""
    known = spans_told(project_id, ((row.trace_id, row.span_id) for row in rows))
    for row in rows:
        span = known.get((row.trace_id, row.span_id))
        if span is None:
            yield PostedEvent.model_validate(row.content)
        elif (event := _replacing(span, row.content)) is not None:
            yield event


def _replacing(span: SpanCall, content: dict[str, Any]) -> PostedEvent | None:
    """Return the event of a span with what a log record tells of its answer."""
    stored = take_out_success(span)
    if stored is None:
        return None
    kind = split_name(content["name"])[1]
    told = {name: content[name] for name in ("attributes", *VERDICT_FIELDS)}
    name = event_name(stored.pop("node"), kind)
    # An attempt that is found out later is none yet.
    wire = {"attempt": 1, **stored, **told, "name": name, "event_id": span.event_id}
    return PostedEvent.model_validate(wire)


def _record_told_later(project_id: int, events: Sequence[PostedEvent]) -> None:
    """Store events again; a run whose attempts were found out is due again."""
    unplaced = unplaced_of(project_id, (event.event_id for event in events))
    record(project_id, events, unplaced=unplaced)


@dataclass(frozen=True, slots=True)
class _Made:
    """A draft, the item it was made of and where that stood."""

    place: int
    item: Span | LogRecord
    draft: Draft

    @property
    def correlation_id(self) -> str:
        """The run it is of."""
        return str(self.draft.fields.get("correlation_id", ""))

    @property
    def unplaced(self) -> Span | None:
        """The span of a call that does not tell which attempt it was."""
        if self.draft.slot != CALL or isinstance(self.item, LogRecord):
            return None
        is_told = "attempt" in read_fields(self.item.attributes, self.item.resource)
        return None if is_told else self.item


def _drafted(
    items: Iterable[Item | None],
    draft: Callable[[Item], list[Draft]],
    receipt: Receipt,
    evaluations: list[AnswerEvaluation],
) -> Iterator[_Made]:
    """Draft every item, and note what it says of answers; what is refused is counted and gone."""
    for place, item in enumerate(items):
        receipt.items += 1
        if item is None:
            receipt.reject(place, TOO_LARGE, None)
            continue
        receipt.dropped_attributes += item.dropped + count_unknown(item.attributes)
        try:
            drafts, said = draft(item), evaluations_of(item)
        except NoEventError as error:
            receipt.reject(place, str(error), item)
            continue
        evaluations += said
        receipt.ignored += not (drafts or said)
        receipt.not_understood += not (drafts or said) and is_strange(item)
        for made in drafts:
            yield _Made(place, item, made)


def _refuse(place: int, reason: str, item: Span | LogRecord | None) -> Refusal:
    """Describe a refused item by what it tells of itself, without any answer of a model."""
    if item is None:
        return Refusal(ITEM, "", reason, "", 0, place)
    told = {
        "trace_id": item.trace_id,
        "span_id": item.span_id,
        "name": item.name,
        **{name: value for name, value in item.attributes.items() if is_own(name)},
    }
    seen = json.dumps(told, ensure_ascii=False)[:SEEN_BYTES]
    source = short(item.resource, "service.name")
    return Refusal(ITEM, "", reason, seen, len(seen), place, source=source)


class _Judging:
    """Checks answers against the schemas of their nodes, until the time is spent."""

    def __init__(self, project_id: int, made: Sequence[_Made], receipt: Receipt) -> None:
        self._verdicts = AnswerVerdicts(project_id, [one.draft for one in made])
        self.project_id = project_id
        self.receipt = receipt

    def make_event(self, made: _Made) -> tuple[PostedEvent | None, SchemaVerdict | None]:
        """Make the event of a draft; None when its fields are out of their bounds."""
        draft, verdict = self._judge(made.draft)
        try:
            return make_event(draft, self.project_id, verdict), verdict
        except ValidationError as error:
            found = error.errors(include_input=False, include_url=False)
            faults = describe_errors(list(found))
            reason = ", ".join(f"{fault['path']}: {fault['message']}" for fault in faults)
            self.receipt.reject(made.place, reason, made.item)
            return None, verdict

    def _judge(self, draft: Draft) -> tuple[Draft, SchemaVerdict | None]:
        self.receipt.unanswered += draft.slot == CALL and self._verdicts.lacks_answer(draft)
        try:
            return self._verdicts.judge(draft)
        except UncheckedError:
            self.receipt.not_judged += 1
            return draft, None


def _store(intake: Intake, drafts: Iterable[_Made], judging: _Judging, keep_share: float) -> None:
    made = ((one, judging.make_event(one)[0]) for one in drafts)
    events = ((one, event) for one, event in made if event is not None)
    while chunk := list(islice(events, CHUNK)):
        posted = [event for _, event in chunk]
        judging.receipt.runs.update(event.correlation_id for event in posted)
        unplaced = {event.event_id: span for one, event in chunk if (span := one.unplaced)}
        for recorded in record_calls(intake.project_id, posted, keep_share, unplaced):
            _count(recorded, judging.receipt)
        if keep_share < 1.0:
            intake.note_sampled_out(count_sampled_out(posted, keep_share))


def _count(recorded: Recorded, receipt: Receipt) -> None:
    receipt.accepted += recorded.status is RecordStatus.CREATED
    receipt.duplicates += recorded.status is RecordStatus.DUPLICATE
    receipt.known += recorded.status is RecordStatus.CONFLICT


def _tells_by_logs(project_id: int) -> bool:
    """Whether log records have told answers lately: the spans of those tell none."""
    return SpanVerdict.objects.filter(project_id=project_id).exists()


def _join_calls(made: list[_Made], project_id: int, receipt: Receipt) -> list[_Made]:
    """Leave one draft a call; what another span has told already adds no event."""
    joined = join_calls(project_id, [one.draft for one in made])
    receipt.joined += joined.told_before
    return [
        replace(one, draft=joined.drafts[index])
        for index, one in enumerate(made)
        if index in joined.drafts
    ]


def _join_verdicts(project_id: int, drafts: list[_Made]) -> list[_Made]:
    """Join what log records hold of an answer to its span, once."""
    silent = {
        (made.draft.trace_id, made.draft.span_id)
        for made in drafts
        if made.draft.slot == CALL and made.draft.kind is None
    }
    waiting = SpanVerdict.objects.filter(
        project_id=project_id,
        trace_id__in={trace_id for trace_id, _ in silent},
        span_id__in={span_id for _, span_id in silent},
    ).exclude(content=TAKEN)
    rows = {(row.trace_id, row.span_id): row for row in waiting.select_for_update().order_by("pk")}
    # Kept empty for a day: log records that are exported again must not speak twice.
    taken = [row.pk for row in rows.values()]
    SpanVerdict.objects.filter(pk__in=taken).update(content=TAKEN)
    return [
        replace(made, draft=_joined(made.draft, rows.get(_span_of(made.draft)))) for made in drafts
    ]


def _span_of(draft: Draft) -> tuple[str, str]:
    return draft.trace_id, draft.span_id


def _joined(draft: Draft, row: SpanVerdict | None) -> Draft:
    if (
        row is None
        or draft.slot != CALL
        or "parse_error_type" in draft.fields
        or draft.answer.is_told
    ):
        return draft
    told = {name: row.content[name] for name in VERDICT_FIELDS}
    known = {name: value for name, value in told.items() if value is not None}
    return replace(draft, fields={**draft.fields, **known})


def _keep_verdicts(project_id: int, drafts: list[_Made], judging: _Judging) -> None:
    """Keep what answers tell until their spans come; those that came first are corrected."""
    at, rows, late = clock.now(), list[SpanVerdict](), list[PostedEvent]()
    known = spans_told(project_id, (_span_of(made.draft) for made in drafts))
    right: Draft | None = None
    for made in drafts:
        event, verdict = judging.make_event(made)
        span = known.get(_span_of(made.draft))
        if verdict is None or not (verdict.error_type or verdict.repairs):
            # A right answer is the span's to tell.
            judging.receipt.ignored += 1
            right = made.draft
        elif event is not None:
            content, _ = redact_content(event, redactor_of(project_id))
            if span is not None:
                replacing = _replacing(span, content)
                late += [replacing] if replacing is not None else []
                continue
            row = SpanVerdict(project_id=project_id, received_at=at, content=content)
            row.trace_id, row.span_id = _span_of(made.draft)
            rows.append(row)
    if right is not None and not rows and not _tells_by_logs(project_id):
        # One row says for a day that log records tell answers here.
        mark = SpanVerdict(project_id=project_id, received_at=at, content=TAKEN)
        mark.trace_id, mark.span_id = _span_of(right)
        mark.save()
    SpanVerdict.objects.bulk_create(rows, ignore_conflicts=True)
    _record_told_later(project_id, late)
    judging.receipt.joined += len(late)
    judging.receipt.waiting += len(rows)

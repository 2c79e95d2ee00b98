"""Telemetry as events: drafts, answer checks within a budget, storage, a receipt."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar

from django.db import transaction
from pydantic import ValidationError

from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.answer_verdicts import AnswerVerdicts
from diagnostics.ingest.assessments import link_assessments, record_evaluations
from diagnostics.ingest.item_warnings import (
    UncheckedAnswers,
    UncheckedCounts,
    count_unchecked,
    rows_of,
    sentences_of,
)
from diagnostics.ingest.joined_calls import join_calls
from diagnostics.ingest.log_answers import call_of, join_verdicts, keep_verdicts, nodes_of_spans
from diagnostics.ingest.otlp.attributes import OWN_ATTEMPT, OWN_PREFIX, count, count_unknown, short
from diagnostics.ingest.otlp.drafts import CALL, Draft, make_event
from diagnostics.ingest.otlp.evaluations import AnswerEvaluation, evaluations_of
from diagnostics.ingest.otlp.mapping import (
    ANSWER,
    LATEST_NS,
    NoEventError,
    draft_log,
    draft_span,
    is_strange,
)
from diagnostics.ingest.otlp.telemetry import LogRecord, Span, UnreadItem
from diagnostics.ingest.quota_rules import count_sampled_out
from diagnostics.ingest.quotas import admit, note_sampled_out
from diagnostics.ingest.recording import RecordStatus, record_calls
from diagnostics.ingest.rejects import MOST_ITEMS, SEEN_BYTES, Refusal
from diagnostics.ingest.schemas import SchemaVerdict
from diagnostics.ingest.span_runs import NamedAgents, end_runs, is_agent_call, keep_agent_calls
from diagnostics.store.models import Event, Series
from failsoft.events import PostedEvent, UncheckedReason, describe_errors

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
# By run and node, else by node alone: provider and model.
SiblingModels = Mapping[tuple[str, ...], set[tuple[str | None, str]]]
MODEL_NAMES = ("node", "provider", "model")
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
    evaluations, named = list[AnswerEvaluation](), NamedAgents()
    drafts = list(
        _draft_items(_note_agents(spans, agents, named, ended), draft_span, receipt, evaluations)
    )
    drafts = [
        replace(item, draft=replace(item.draft, agent_node=named.node_of(item.draft)))
        for item in drafts
    ]
    keep_share = admit(key, max(len(drafts) + len(evaluations), 1)) if key else 1.0
    places = [item.draft.place for item in drafts if item.draft.place is not None]
    judge = _AnswerJudge(project_id, drafts, receipt)
    # Lock the rows of runs in one order, to avoid deadlocks.
    drafts.sort(key=lambda item: item.correlation_id)
    with transaction.atomic():
        answered = join_verdicts(project_id, [item.draft for item in drafts])
        # One draft per call: one that another span reported adds no event.
        joined = join_calls(project_id, _name_models(project_id, answered))
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
        keep_agent_calls(project_id, [(span, named.node_of(span)) for span in agents])
        ended_runs = {item.correlation_id for item in drafts if item.draft.trace_id in ended}
        end_runs(project_id, ended_runs | ended)
    return receipt


def _note_agents(
    spans: Iterable[Span | UnreadItem], agents: list[Span], named: NamedAgents, ended: set[str]
) -> Iterator[Span | UnreadItem]:
    """Yield the spans; collect agent calls, and the traces whose root span is among them."""
    for span in spans:
        if isinstance(span, Span):
            named.note(span)
            if not span.parent_id:
                ended.add(span.trace_id)
            if is_agent_call(span) and 0 < span.started_ns <= span.ended_ns < LATEST_NS:
                agents.append(span)
        yield span


def _name_models(project_id: int, drafts: Sequence[Draft]) -> list[Draft]:
    """Name the model and provider of failed calls that some clients learn from the answer only.

    They are those of the other calls of its run and node, else of its node, if all name the same.
    """
    nameless = [_family(draft) for draft in drafts if _is_nameless(draft)]
    if not nameless:
        return list(drafts)
    runs, nodes = map(set, zip(*nameless, strict=True))
    events = Event.objects.filter(project_id=project_id, correlation_id__in=runs)
    series = Series.objects.filter(project_id=project_id, node__in=nodes)
    members = [
        *((*_family(draft), *map(draft.fields.get, MODEL_NAMES[1:])) for draft in drafts),
        *events.values_list("correlation_id", *MODEL_NAMES),
        *(("", *names) for names in series.values_list(*MODEL_NAMES)),
    ]
    known = defaultdict[tuple[str, ...], set[tuple[str | None, str]]](set)
    for run, node, provider, model in members:
        if model is not None:
            known[run, node].add((provider, model))
            known[node,].add((provider, model))
    return [_with_names(draft, known) if _is_nameless(draft) else draft for draft in drafts]


def _is_nameless(draft: Draft) -> bool:
    is_named = draft.fields.keys() >= {"provider", "model"}
    return draft.slot == CALL and draft.is_error and not is_named


def _family(draft: Draft) -> tuple[str, str]:
    return str(draft.fields.get("correlation_id")), draft.node


def _with_names(draft: Draft, known: SiblingModels) -> Draft:
    own = {name: draft.fields[name] for name in MODEL_NAMES[1:] if name in draft.fields}
    for family in (_family(draft), (draft.node,)):
        siblings = [dict(zip(MODEL_NAMES[1:], pair, strict=True)) for pair in known.get(family, ())]
        alike = [names for names in siblings if own.items() <= names.items()]
        if len({names["model"] for names in alike}) == 1:
            providers = {names["provider"] for names in alike} - {None}
            own |= {"model": alike[0]["model"]}
            own |= {"provider": providers.pop()} if len(providers) == 1 else {}
    return replace(draft, fields={**own, **draft.fields})


def receive_logs(
    project_id: int, records: Iterable[LogRecord | UnreadItem], key: ApiKey | None = None
) -> Receipt:
    """Store the events of log records, and keep verdicts for spans that have not arrived.

    As `receive_spans`.
    """
    receipt, evaluations = Receipt(), list[AnswerEvaluation]()
    drafts = list(_draft_items(records, draft_log, receipt, evaluations))
    keep_share = admit(key, max(len(drafts) + len(evaluations), 1)) if key else 1.0
    complete = [item for item in drafts if item.draft.slot != ANSWER]
    answers = [item for item in drafts if item.draft.slot == ANSWER]
    nodes = nodes_of_spans(project_id, (item.draft for item in answers))
    answers = [
        replace(item, draft=replace(item.draft, agent_node=nodes.get(call_of(item.draft), "")))
        for item in answers
    ]
    judge = _AnswerJudge(project_id, [*complete, *answers], receipt)
    with transaction.atomic():
        _store(complete, judge, key, keep_share)
        judged = [(item.draft, *judge.make_event(item)) for item in answers]
        kept = keep_verdicts(project_id, judged)
        receipt.waiting += kept.waiting
        receipt.joined += kept.corrected
        receipt.ignored += kept.ignored
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
        nameless = {event.event_id for item, event in chunk if not item.draft.named_node}
        recorded = record_calls(judge.project_id, posted, keep_share, unplaced, nameless)
        created = [item.index for item in recorded if item.status is RecordStatus.CREATED]
        judge.receipt.count([item.status for item in recorded])
        judge.receipt.unchecked.update(count_unchecked(posted[index] for index in created))
        judge.receipt.time_marks.update(item.time_mark for item in recorded if item.time_mark)
        if key and keep_share < 1.0:
            note_sampled_out(key, count_sampled_out(posted, keep_share))

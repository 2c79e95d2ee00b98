"""Telemetry as events: drafts, answer checks within a budget, storage, a receipt."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple, TypeVar

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
from diagnostics.ingest.otlp.attributes import OWN_PREFIX, count_unknown, short
from diagnostics.ingest.otlp.drafts import CALL, Draft, make_event
from diagnostics.ingest.otlp.evaluations import AnswerEvaluation, evaluations_of
from diagnostics.ingest.otlp.mapping import ANSWER, NoEventError, draft_log, draft_span, is_strange
from diagnostics.ingest.otlp.telemetry import LogRecord, Span, UnreadItem
from diagnostics.ingest.quota_rules import count_sampled_out
from diagnostics.ingest.quotas import admit, note_sampled_out
from diagnostics.ingest.recording import RecordStatus, record_calls
from diagnostics.ingest.rejects import MOST_ITEMS, SEEN_BYTES, Refusal
from diagnostics.ingest.schemas import SchemaVerdict
from diagnostics.ingest.span_runs import RequestAgents, end_runs, keep_agent_calls
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


class _DraftedItem(NamedTuple):
    """A draft, and the item that it is of at its place in the request."""

    place: int
    item: Span | LogRecord
    draft: Draft

    def of_agent(self, node: str) -> "_DraftedItem":
        return self._replace(draft=replace(self.draft, agent_node=node))


@dataclass(slots=True)
class _Request:
    """The items of one request, on their way to the store."""

    project_id: int
    key: ApiKey | None
    receipt: Receipt = field(default_factory=Receipt)
    evaluations: list[AnswerEvaluation] = field(default_factory=list)
    keep_share: float = 1.0
    # Checks answers against the schemas of their nodes, within a time budget.
    verdicts: AnswerVerdicts = field(init=False)

    def draft(
        self, items: Iterable[Item | UnreadItem], draft: Callable[[Item], list[Draft]]
    ) -> list[_DraftedItem]:
        """Return the drafts of all items, taken from the quota of the key."""
        drafts = list(self._draft_items(items, draft))
        if self.key:
            self.keep_share = admit(self.key, max(len(drafts) + len(self.evaluations), 1))
        return drafts

    def _draft_items(
        self, items: Iterable[Item | UnreadItem], draft: Callable[[Item], list[Draft]]
    ) -> Iterator[_DraftedItem]:
        """Yield the drafts of every item; collect evaluations, and count refused items."""
        receipt = self.receipt
        for place, item in enumerate(items):
            receipt.items += 1
            if isinstance(item, UnreadItem):
                receipt.reject(place, item.reason, None)
                continue
            receipt.dropped_attributes += item.dropped + count_unknown(item.attributes)
            try:
                drafts, evaluations = draft(item), evaluations_of(item)
            except NoEventError as error:
                receipt.reject(place, str(error), item)
                continue
            self.evaluations += evaluations
            receipt.ignored += not (drafts or evaluations)
            receipt.not_understood += not (drafts or evaluations) and is_strange(item)
            for drafted in drafts:
                yield _DraftedItem(place, item, drafted)

    def load_schemas(self, drafts: Iterable[_DraftedItem]) -> None:
        self.verdicts = AnswerVerdicts(self.project_id, [item.draft for item in drafts])

    def make_event(self, drafted: _DraftedItem) -> tuple[PostedEvent | None, SchemaVerdict | None]:
        """Return the event of a draft; None if its fields are out of bounds."""
        draft, verdict = self.verdicts.judge(drafted.draft)
        try:
            return make_event(draft, self.project_id, verdict), verdict
        except ValidationError as error:
            faults = describe_errors(error)
            reason = ", ".join(f"{fault['path']}: {fault['message']}" for fault in faults)
            self.receipt.reject(drafted.place, reason, drafted.item)
            return None, verdict

    def store(self, drafts: Iterable[_DraftedItem]) -> None:
        drafted = ((item.draft, self.make_event(item)[0]) for item in drafts)
        events = ((draft, event) for draft, event in drafted if event is not None)
        receipt = self.receipt
        while chunk := list(islice(events, CHUNK)):
            posted = [event for _, event in chunk]
            receipt.runs.update(event.correlation_id for event in posted)
            unplaced = {event.event_id: draft.unplaced for draft, event in chunk if draft.unplaced}
            nameless = {event.event_id for draft, event in chunk if not draft.named_node}
            recorded = record_calls(self.project_id, posted, self.keep_share, unplaced, nameless)
            created = [item.index for item in recorded if item.status is RecordStatus.CREATED]
            receipt.count([item.status for item in recorded])
            receipt.unchecked.update(count_unchecked(posted[index] for index in created))
            receipt.time_marks.update(item.time_mark for item in recorded if item.time_mark)
            if self.key and self.keep_share < 1.0:
                note_sampled_out(self.key, count_sampled_out(posted, self.keep_share))

    def keep_evaluations(self) -> None:
        clear = [evaluation for evaluation in self.evaluations if evaluation.verdict]
        self.receipt.unclear += len(self.evaluations) - len(clear)
        statuses = record_evaluations(self.project_id, clear)
        self.receipt.count(statuses)
        self.receipt.ignored += len(clear) - len(statuses)


def receive_spans(
    project_id: int, spans: Iterable[Span | UnreadItem], key: ApiKey | None = None
) -> Receipt:
    """Store the events of spans, each once, in one transaction; return after commit.

    They count against the quota of a key, if one sent them. Raises QuotaExceededError before
    anything is stored.
    """
    request, agents = _Request(project_id, key), RequestAgents()
    drafts = [
        item.of_agent(agents.node_of(item.draft))
        for item in request.draft(agents.noting(spans), draft_span)
    ]
    places = [item.draft.place for item in drafts if item.draft.place is not None]
    request.load_schemas(drafts)
    # Lock the rows of runs in one order, to avoid deadlocks.
    drafts.sort(key=lambda item: item.draft.correlation_id)
    with transaction.atomic():
        answered = join_verdicts(project_id, [item.draft for item in drafts])
        # One draft per call: one that another span reported adds no event.
        joined, repeated = join_calls(project_id, _name_models(project_id, answered))
        request.receipt.joined += repeated
        drafts = [drafts[index]._replace(draft=joined[index]) for index in sorted(joined)]
        request.store(drafts)
        link_assessments(project_id, places)
        request.keep_evaluations()
        keep_agent_calls(project_id, agents)
        ended = (item.draft for item in drafts if item.draft.trace_id in agents.ended)
        end_runs(project_id, agents.ended | {draft.correlation_id for draft in ended})
    return request.receipt


def receive_logs(
    project_id: int, records: Iterable[LogRecord | UnreadItem], key: ApiKey | None = None
) -> Receipt:
    """Store the events of log records, and keep verdicts for spans that have not arrived.

    As `receive_spans`.
    """
    request = _Request(project_id, key)
    drafts = request.draft(records, draft_log)
    complete = [item for item in drafts if item.draft.slot != ANSWER]
    answers = [item for item in drafts if item.draft.slot == ANSWER]
    nodes = nodes_of_spans(project_id, (item.draft for item in answers))
    answers = [item.of_agent(nodes.get(call_of(item.draft), "")) for item in answers]
    request.load_schemas([*complete, *answers])
    with transaction.atomic():
        request.store(complete)
        judged = [(item.draft, *request.make_event(item)) for item in answers]
        kept = keep_verdicts(project_id, judged)
        request.receipt.waiting += kept.waiting
        request.receipt.joined += kept.corrected
        request.receipt.ignored += kept.ignored
        request.keep_evaluations()
    return request.receipt


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
    return draft.correlation_id, draft.node


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

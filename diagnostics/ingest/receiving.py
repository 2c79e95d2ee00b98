"""Telemetry as events: drafted, its answers checked within a budget, stored, accounted for."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice
from time import thread_time
from typing import Any, TypeVar

from django.db import transaction
from pydantic import ValidationError

from diagnostics import clock
from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.agent_schemas import schemas_for
from diagnostics.ingest.models import SpanVerdict
from diagnostics.ingest.otlp.attributes import short
from diagnostics.ingest.otlp.failsoft_attributes import count_unknown, is_own
from diagnostics.ingest.otlp.mapping import (
    ANSWER,
    CALL,
    Draft,
    NoEventError,
    draft_log,
    draft_span,
    make_event,
)
from diagnostics.ingest.otlp.telemetry import LogRecord, Span
from diagnostics.ingest.quota_rules import count_sampled_out
from diagnostics.ingest.quotas import admit, note_sampled_out
from diagnostics.ingest.recording import Recorded, RecordStatus, record
from diagnostics.ingest.rejects import MOST_ITEMS, SEEN_BYTES, Refusal
from diagnostics.ingest.schemas import CompiledSchema, OverBudgetError, SchemaVerdict, judge
from diagnostics.redaction.event_rows import redact_content
from diagnostics.redaction.rules import redactor_of
from failsoft.events import PostedEvent, describe_errors

# Of one request; what is left over is stored without being checked.
JUDGING_SECONDS = 1.0
CHUNK = 1000
MAX_REASONS = 3
ITEM = "otlp_item"
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
    waiting: int = 0
    ignored: int = 0
    rejected: int = 0
    not_judged: int = 0
    dropped_attributes: int = 0
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
        return "; ".join(told)


def receive_spans(key: ApiKey, spans: Iterable[Span | None]) -> Receipt:
    """Store the events of spans, each once, in one transaction; an answer after commit.

    Raises QuotaExceededError before anything is stored.
    """
    receipt = Receipt()
    drafts = list(_drafted(spans, draft_span, receipt))
    keep_share = admit(key, max(len(drafts), 1))
    judging = _Judging(key.project_id, drafts, receipt)
    with transaction.atomic():
        if judging.has_schemas:
            drafts = _join_verdicts(key.project_id, drafts)
        _store(key, drafts, judging, keep_share)
    return receipt


def receive_logs(key: ApiKey, records: Iterable[LogRecord | None]) -> Receipt:
    """Store what log records tell by themselves, and keep verdicts for spans to come.

    Raises QuotaExceededError before anything is stored.
    """
    receipt = Receipt()
    drafts = list(_drafted(records, draft_log, receipt))
    keep_share = admit(key, max(len(drafts), 1))
    judging = _Judging(key.project_id, drafts, receipt)
    whole = [made for made in drafts if made.draft.slot != ANSWER]
    answers = [made for made in drafts if made.draft.slot == ANSWER]
    with transaction.atomic():
        _store(key, whole, judging, keep_share)
        _keep_verdicts(key.project_id, answers, judging)
    return receipt


def settle_verdicts() -> int:
    """Make events of verdicts whose span has not come in 2 minutes; returns how many."""
    now = clock.now()
    SpanVerdict.objects.filter(received_at__lt=now - KEEP_TAKEN, content=TAKEN).delete()
    old = SpanVerdict.objects.filter(received_at__lt=now - PATIENCE)
    left = old.exclude(content=TAKEN).order_by("pk")
    with transaction.atomic():
        rows = list(left.select_for_update(skip_locked=True)[:SETTLED_AT_ONCE])
        for project_id in {row.project_id for row in rows}:
            mine = [row for row in rows if row.project_id == project_id]
            record(project_id, [PostedEvent.model_validate(row.content) for row in mine])
        SpanVerdict.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)


@dataclass(frozen=True, slots=True)
class _Made:
    """A draft, the item it was made of and where that stood."""

    place: int
    item: Span | LogRecord
    draft: Draft


def _drafted(
    items: Iterable[Item | None], draft: Callable[[Item], list[Draft]], receipt: Receipt
) -> Iterator[_Made]:
    """Draft every item; one that is refused or ignored is counted and gone."""
    for place, item in enumerate(items):
        receipt.items += 1
        if item is None:
            receipt.reject(place, TOO_LARGE, None)
            continue
        receipt.dropped_attributes += item.dropped + count_unknown(item.attributes)
        try:
            drafts = draft(item)
        except NoEventError as error:
            receipt.reject(place, str(error), item)
            continue
        receipt.ignored += not drafts
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
        nodes = {one.draft.node for one in made}
        self._schemas = schemas_for(project_id, nodes) if nodes else {}
        self._until = thread_time() + JUDGING_SECONDS
        self.project_id = project_id
        self.receipt = receipt

    @property
    def has_schemas(self) -> bool:
        return bool(self._schemas)

    def judge(self, draft: Draft) -> tuple[Draft, SchemaVerdict | None]:
        """Return the verdict on a draft's answer, None for one that was not checked."""
        row, schema = self._schemas.get(draft.node, (None, None))
        if not draft.is_open or (row is None and not draft.expects_json):
            return draft, None
        verdict = self._within_budget(draft, schema)
        if verdict is None:
            self.receipt.not_judged += 1
            return draft, None
        if row is None or schema is None:
            return draft, verdict
        # The agent may have named its schema itself.
        named = {"schema": schema.title or draft.node, "schema_version": row.version}
        return replace(draft, fields={**named, **draft.fields}), verdict

    def _within_budget(self, draft: Draft, schema: CompiledSchema | None) -> SchemaVerdict | None:
        if thread_time() > self._until:
            return None
        try:
            return judge(draft.answer or "", draft.finish_reason, schema)
        except OverBudgetError:
            return None

    def make_event(self, made: _Made) -> tuple[PostedEvent | None, SchemaVerdict | None]:
        """Make the event of a draft; None when its fields are out of their bounds."""
        draft, verdict = self.judge(made.draft)
        try:
            return make_event(draft, self.project_id, verdict), verdict
        except ValidationError as error:
            found = error.errors(include_input=False, include_url=False)
            faults = describe_errors(list(found))
            reason = ", ".join(f"{fault['path']}: {fault['message']}" for fault in faults)
            self.receipt.reject(made.place, reason, made.item)
            return None, verdict


def _store(key: ApiKey, drafts: Iterable[_Made], judging: _Judging, keep_share: float) -> None:
    made = (judging.make_event(one)[0] for one in drafts)
    events = (event for event in made if event is not None)
    while chunk := list(islice(events, CHUNK)):
        for recorded in record(key.project_id, chunk, keep_share):
            _count(recorded, judging.receipt)
        if keep_share < 1.0:
            note_sampled_out(key, count_sampled_out(chunk, keep_share))


def _count(recorded: Recorded, receipt: Receipt) -> None:
    receipt.accepted += recorded.status is RecordStatus.CREATED
    receipt.duplicates += recorded.status is RecordStatus.DUPLICATE
    receipt.known += recorded.status is RecordStatus.CONFLICT


def _join_verdicts(project_id: int, drafts: list[_Made]) -> list[_Made]:
    """Join what log records hold of an answer to its span, once."""
    silent = {
        (made.draft.trace_id, made.draft.span_id)
        for made in drafts
        if made.draft.answer is None and made.draft.kind is None
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
    if row is None or draft.slot != CALL or "parse_error_type" in draft.fields:
        return draft
    told: dict[str, Any] = {name: row.content[name] for name in VERDICT_FIELDS}
    return replace(draft, fields={**draft.fields, **told})


def _keep_verdicts(project_id: int, drafts: Iterable[_Made], judging: _Judging) -> None:
    """Keep what is wrong with answers until their spans come; a right one is the span's."""
    at, rows = clock.now(), list[SpanVerdict]()
    for made in drafts:
        event, verdict = judging.make_event(made)
        if verdict is None or verdict.error_type is None:
            judging.receipt.ignored += 1
        elif event is not None:
            content, _ = redact_content(event, redactor_of(project_id))
            row = SpanVerdict(project_id=project_id, received_at=at, content=content)
            row.trace_id, row.span_id = _span_of(made.draft)
            rows.append(row)
    SpanVerdict.objects.bulk_create(rows, ignore_conflicts=True)
    judging.receipt.waiting += len(rows)

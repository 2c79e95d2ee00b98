"""Telemetry as events: drafted, its answers checked within a budget, stored, accounted for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice
from time import thread_time
from typing import Any, TypeVar

from django.db import transaction
from pydantic import ValidationError

from diagnostics import clock
from diagnostics.agent_schemas import schemas_for
from diagnostics.core.agent_schemas import OverBudgetError, Schema, Verdict, judge
from diagnostics.core.event_faults import describe_errors
from diagnostics.core.events import Event
from diagnostics.core.otlp.mapping import (
    ANSWER,
    CALL,
    Draft,
    NoEventError,
    draft_log,
    draft_span,
    make_event,
)
from diagnostics.core.otlp.own import count_unknown
from diagnostics.core.otlp.telemetry import LogRecord, Span
from diagnostics.core.storing import redact_content
from diagnostics.models import AgentSchema, SpanVerdict
from diagnostics.recording import Recorded, RecordStatus, record
from diagnostics.redacting import redact_found

# Of one request; what is left over is stored without being checked.
JUDGING_SECONDS = 1.0
CHUNK = 1000
MAX_REASONS = 3
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
    reasons: list[str] = field(default_factory=list)

    def reject(self, place: int, reason: str) -> None:
        """Count a refused item and keep the first reasons."""
        self.rejected += 1
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append(f"item {place}: {reason}")

    @property
    def message(self) -> str:
        """Say what the sender should know; empty when all went well."""
        told = list(self.reasons)
        if self.rejected > len(self.reasons):
            told.append(f"and {self.rejected - len(self.reasons)} more rejected")
        if self.not_judged:
            told.append(
                f"{self.not_judged} answers were stored without being checked: "
                "they take more time than one request has"
            )
        return "; ".join(told)


def receive_spans(project_id: int, spans: Iterable[Span | None]) -> Receipt:
    """Store the events of spans, each once, in one transaction; an answer after commit."""
    receipt = Receipt()
    drafts = list(_drafted(spans, draft_span, receipt))
    judging = _Judging(project_id, [draft for _, draft in drafts], receipt)
    with transaction.atomic():
        if judging.has_schemas:
            drafts = _join_verdicts(project_id, drafts)
        _store(project_id, drafts, judging, receipt)
    return receipt


def receive_logs(project_id: int, records: Iterable[LogRecord | None]) -> Receipt:
    """Store what log records tell by themselves, and keep verdicts for spans to come."""
    receipt = Receipt()
    drafts = list(_drafted(records, draft_log, receipt))
    judging = _Judging(project_id, [draft for _, draft in drafts], receipt)
    whole = [(place, draft) for place, draft in drafts if draft.slot != ANSWER]
    answers = [(place, draft) for place, draft in drafts if draft.slot == ANSWER]
    with transaction.atomic():
        _store(project_id, whole, judging, receipt)
        _keep_verdicts(project_id, answers, judging, receipt)
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
            record(project_id, [Event.model_validate(row.content) for row in mine])
        SpanVerdict.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)


def _drafted(
    items: Iterable[Item | None],
    draft: Callable[[Item], list[Draft]],
    receipt: Receipt,
) -> Iterator[tuple[int, Draft]]:
    """Draft every item; one that is refused or ignored is counted and gone."""
    for place, item in enumerate(items):
        receipt.items += 1
        if item is None:
            receipt.reject(place, TOO_LARGE)
            continue
        receipt.dropped_attributes += item.dropped + count_unknown(item.attributes)
        try:
            drafts = draft(item)
        except NoEventError as error:
            receipt.reject(place, str(error))
            continue
        receipt.ignored += not drafts
        for made in drafts:
            yield place, made


class _Judging:
    """Checks answers against the schemas of their nodes, until the time is spent."""

    def __init__(
        self, project_id: int, drafts: Sequence[Draft], receipt: Receipt
    ) -> None:
        nodes = {draft.node for draft in drafts}
        self._schemas = schemas_for(project_id, nodes) if nodes else {}
        self._receipt = receipt
        self._until = thread_time() + JUDGING_SECONDS

    @property
    def has_schemas(self) -> bool:
        return bool(self._schemas)

    def judge(self, draft: Draft) -> tuple[Draft, Verdict | None]:
        """Give the verdict on a draft's answer, None for one that was not checked."""
        row, schema = self._schemas.get(draft.node, (None, None))
        if not draft.is_open or (row is None and not draft.expects_json):
            return draft, None
        if thread_time() > self._until:
            self._receipt.not_judged += 1
            return draft, None
        try:
            verdict = judge(draft.answer or "", draft.finish_reason, schema)
        except OverBudgetError:
            self._receipt.not_judged += 1
            return draft, None
        return _under_schema(draft, row, schema), verdict


def _under_schema(
    draft: Draft, row: AgentSchema | None, schema: Schema | None
) -> Draft:
    """Name the schema an answer was checked against, unless the agent has named it."""
    if row is None or schema is None:
        return draft
    named = {"schema": schema.title or draft.node, "schema_version": row.version}
    return replace(draft, fields={**named, **draft.fields})


def _store(
    project_id: int,
    drafts: Iterable[tuple[int, Draft]],
    judging: _Judging,
    receipt: Receipt,
) -> None:
    events = _events(project_id, drafts, judging, receipt)
    while chunk := list(islice(events, CHUNK)):
        for recorded in record(project_id, chunk):
            _count(recorded, receipt)


def _count(recorded: Recorded, receipt: Receipt) -> None:
    receipt.accepted += recorded.status is RecordStatus.CREATED
    receipt.duplicates += recorded.status is RecordStatus.DUPLICATE
    receipt.known += recorded.status is RecordStatus.CONFLICT


def _events(
    project_id: int,
    drafts: Iterable[tuple[int, Draft]],
    judging: _Judging,
    receipt: Receipt,
) -> Iterator[Event]:
    for place, draft in drafts:
        event = _event(project_id, place, *judging.judge(draft), receipt)
        if event is not None:
            yield event


def _event(
    project_id: int,
    place: int,
    draft: Draft,
    verdict: Verdict | None,
    receipt: Receipt,
) -> Event | None:
    try:
        return make_event(draft, project_id, verdict)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        faults = describe_errors(list(found))
        receipt.reject(
            place, ", ".join(f"{fault['path']}: {fault['message']}" for fault in faults)
        )
        return None


def _join_verdicts(
    project_id: int, drafts: list[tuple[int, Draft]]
) -> list[tuple[int, Draft]]:
    """Give spans without a text of their answer what a log record told of it, once."""
    silent = {
        (draft.trace_id, draft.span_id)
        for _, draft in drafts
        if draft.answer is None and draft.kind is None
    }
    waiting = SpanVerdict.objects.filter(
        project_id=project_id,
        trace_id__in={trace_id for trace_id, _ in silent},
        span_id__in={span_id for _, span_id in silent},
    ).exclude(content=TAKEN)
    rows = {
        (row.trace_id, row.span_id): row
        for row in waiting.select_for_update().order_by("pk")
    }
    # Kept empty for a day: log records that are exported again must not speak twice.
    taken = [row.pk for row in rows.values()]
    SpanVerdict.objects.filter(pk__in=taken).update(content=TAKEN)
    return [
        (place, _joined(draft, rows.get((draft.trace_id, draft.span_id))))
        for place, draft in drafts
    ]


def _joined(draft: Draft, row: SpanVerdict | None) -> Draft:
    if row is None or draft.slot != CALL or "parse_error_type" in draft.fields:
        return draft
    told: dict[str, Any] = {name: row.content[name] for name in VERDICT_FIELDS}
    return replace(draft, fields={**draft.fields, **told})


def _keep_verdicts(
    project_id: int,
    drafts: Iterable[tuple[int, Draft]],
    judging: _Judging,
    receipt: Receipt,
) -> None:
    """Keep what is wrong with answers until their spans come; a right one is the span's."""
    at = clock.now()
    rows: list[SpanVerdict] = []
    for place, draft in drafts:
        named, verdict = judging.judge(draft)
        if verdict is None or verdict.error_type is None:
            receipt.ignored += 1
            continue
        event = _event(project_id, place, named, verdict, receipt)
        if event is not None:
            rows.append(_verdict_row(project_id, draft, event))
            rows[-1].received_at = at
    SpanVerdict.objects.bulk_create(rows, ignore_conflicts=True)
    receipt.waiting += len(rows)


def _verdict_row(project_id: int, draft: Draft, event: Event) -> SpanVerdict:
    content, _ = redact_content(event, redact_found)
    return SpanVerdict(
        project_id=project_id,
        trace_id=draft.trace_id,
        span_id=draft.span_id,
        content=content,
    )

"""Runs reported by spans: once they are over, attempts are numbered and ends recorded.

1. A call without an attempt number is stored and counted as a call, not as a run.
2. A run is due when the root span of its trace has arrived, or 2 minutes after its last call.
3. Its calls are placed (diagnostics.ingest.attempt_rules); attempts without an answer get a
   `degraded` event, recorded as if the agent had reported it.
4. A later span makes the run due again: all calls are placed anew, and the difference is
   counted. A killed settlement has changed nothing, and repeating one changes nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from pydantic_core import to_json

from diagnostics import clock
from diagnostics.ingest.attempt_rules import (
    AgentKey,
    AgentTime,
    AnswerAttempts,
    TimedCall,
    group_attempts,
)
from diagnostics.ingest.models import AgentSpan, UnplacedCall
from diagnostics.ingest.otlp.attributes import short
from diagnostics.ingest.otlp.telemetry import Span, time_of
from diagnostics.ingest.recording import Recorded, RecordStatus, record
from diagnostics.store.aggregation import fold
from diagnostics.store.deadlines import try_each_project
from diagnostics.store.models import Event
from diagnostics.store.retention import delete_before
from diagnostics.store.run_models import AgentRun
from diagnostics.store.runs import OF_IDS, forget_batch, rebuild_runs
from diagnostics.store.sql import execute, insert_rows
from failsoft.events import AFTER, CallErrorType, EventKind, PostedEvent, event_name
from failsoft.identifiers import uuid7

SETTLED_AT_ONCE, SETTLE_SECONDS = 200, 20.0
KEPT = timedelta(days=1)
PURGE_BATCH = 20_000
AGENT_OPERATIONS = frozenset({"invoke_agent", "invoke_workflow"})
AGENT_KIND = "AGENT"
# The reason of a run that ends with such a call; for any other it is `provider_failed`.
REASONS = frozenset({CallErrorType.CIRCUIT_OPEN.value, CallErrorType.TIMEOUT.value})
FINAL = frozenset({EventKind.SUCCEEDED, EventKind.CANCELLED})
SAME = (
    *("provider", "model", "environment", "source", "release"),
    *("prompt_version", "schema", "schema_version", "region", "credential"),
)
# A better report of an event replaces the stored one.
BETTER_REPORT = """(project_id, event_id) DO UPDATE SET occurred_at = excluded.occurred_at,
started_at = excluded.started_at, trace_id = excluded.trace_id, parent_id = excluded.parent_id"""
Events = Mapping[UUID, Event]


def is_agent_call(span: Span) -> bool:
    attributes = span.attributes
    kind = (short(attributes, "openinference.span.kind") or "").upper()
    return short(attributes, "gen_ai.operation.name") in AGENT_OPERATIONS or kind == AGENT_KIND


def keep_agent_calls(project_id: int, spans: Iterable[Span]) -> None:
    """Store the times of agent calls, each once."""
    at = clock.now()
    rows = [
        AgentSpan(
            project_id=project_id,
            trace_id=span.trace_id,
            span_id=span.span_id,
            received_at=at,
            started_at=time_of(span.started_ns),
            ended_at=time_of(span.ended_ns),
        )
        for span in spans
    ]
    AgentSpan.objects.bulk_create(rows, ignore_conflicts=True)


def record_calls(
    project_id: int, events: Sequence[PostedEvent], keep_share: float, unplaced: Mapping[UUID, Span]
) -> list[Recorded]:
    """Store events, and the times of calls without an attempt number.

    In the caller's transaction; outcomes in order.
    """
    # Before the events: none of those that count when they arrive arrived earlier.
    at = clock.now() if unplaced else None
    recorded = record(project_id, events, keep_share, unplaced=unplaced)
    if at is not None:
        created = [item for item in recorded if item.status is RecordStatus.CREATED]
        # A span sent twice in a request is one call.
        calls = {item.event_id: item for item in reversed(created) if item.event_id in unplaced}
        placed = [(item, events[item.index], unplaced[key]) for key, item in calls.items()]
        _keep_calls(project_id, placed, at)
    return recorded


def _keep_calls(
    project_id: int, calls: Iterable[tuple[Recorded, PostedEvent, Span]], received_at: datetime
) -> None:
    """Store the time and place of new calls without an attempt number, on the sender's clock."""
    rows = [
        {
            "project_id": project_id,
            "correlation_id": stored.correlation_id,
            "event_id": event.event_id,
            "occurred_at": event.occurred_at,
            "received_at": received_at,
            "started_at": time_of(span.started_ns) if span.started_ns else event.occurred_at,
            "trace_id": span.trace_id,
            "parent_id": span.parent_id,
            "cycle": event.cycle,
            "is_end": False,
        }
        for stored, event, span in calls
    ]
    insert_rows(UnplacedCall._meta.db_table, rows, BETTER_REPORT)


def unplaced_of(project_id: int, event_ids: Iterable[UUID]) -> frozenset[UUID]:
    """Return which of these events have no attempt number."""
    calls = UnplacedCall.objects.filter(project_id=project_id, event_id__in=list(event_ids))
    return frozenset(calls.values_list("event_id", flat=True))


def end_runs(project_id: int, correlation_ids: Collection[str]) -> None:
    """Make runs due whose root span has arrived, unless another transaction holds them."""
    unsettled = AgentRun.objects.filter(project_id=project_id, settles_at__isnull=False)
    rows = unsettled.filter(correlation_id__in=correlation_ids).values("correlation_id")
    locked = rows.select_for_update(skip_locked=True)
    unsettled.filter(correlation_id__in=locked).update(settles_at=clock.now())


def end_past_runs(project_id: int, before: datetime) -> None:
    """Make imported runs due whose last call ended before a time."""
    unsettled = AgentRun.objects.filter(project_id=project_id, settles_at__isnull=False)
    unsettled.filter(ended_at__lt=before).update(settles_at=clock.now())


def settle_runs() -> int:
    """Place the calls of due runs, some of each project; return how many runs."""
    due = AgentRun.objects.filter(settles_at__lte=clock.now())
    # A wrong end is removed from its failure group, which must exist by then.
    fold()
    return try_each_project("runs", due, _settle_due, SETTLE_SECONDS)


@transaction.atomic
def _settle_due(due: QuerySet[AgentRun], project_id: int) -> int:
    runs = due.filter(project_id=project_id).order_by("correlation_id")
    rows = runs.select_for_update(skip_locked=True)[:SETTLED_AT_ONCE]
    ids = [row.correlation_id for row in rows]
    _settle(project_id, ids)
    settled = AgentRun.objects.filter(project_id=project_id, correlation_id__in=ids)
    settled.update(settles_at=None)
    return len(ids)


def forget_old_spans() -> int:
    """Delete spans older than a day; return how many."""
    before = clock.now() - KEPT
    tables = ("diagnostics_unplacedcall", "diagnostics_agentspan")
    return sum(delete_before(table, "received_at", before, PURGE_BATCH) for table in tables)


def _settle(project_id: int, ids: Sequence[str]) -> None:
    known = list(UnplacedCall.objects.filter(project_id=project_id, correlation_id__in=ids))
    events = _events_of(project_id, known)
    calls = [row for row in known if not row.is_end and row.event_id in events]
    traces = {row.trace_id for row in calls}
    agents = {
        AgentKey(row.trace_id, row.span_id): AgentTime(row.started_at, row.ended_at)
        for row in AgentSpan.objects.filter(project_id=project_id, trace_id__in=traces)
    }
    answers = list(group_attempts(_timed_calls(calls, events), agents))
    places = [
        {
            "event_id": call.event_id,
            "occurred_at": events[call.event_id].occurred_at,
            "cycle": answer.cycle,
            "attempt": attempt,
        }
        for answer in answers
        for attempt, call in enumerate(answer.calls, start=1)
    ]
    execute("place_calls", {"project": project_id, "rows": to_json(places).decode()})
    ends = {row.event_id for row in known if row.is_end}
    ended = Event.objects.filter(
        project_id=project_id, correlation_id__in=ids, kind=EventKind.DEGRADED
    )
    own_ends = ended.exclude(event_id__in=ends)
    reported = set(own_ends.values_list("correlation_id", flat=True))
    ends_needed = {
        event.event_id: event
        for answer in answers
        if answer.is_degraded and answer.calls[0].run not in reported
        for event in [_end_of(project_id, answer, events)]
    }
    _replace_ends(project_id, ends, ends_needed)
    rebuild_runs(project_id, ids)


def _events_of(project_id: int, calls: Sequence[UnplacedCall]) -> Events:
    if not calls:
        return {}
    # An event ahead of the clock counts when it arrived.
    earliest = min(min(row.occurred_at, row.received_at) for row in calls)
    events = Event.objects.filter(
        project_id=project_id,
        event_id__in=[row.event_id for row in calls],
        occurred_at__range=(earliest, max(row.occurred_at for row in calls)),
    )
    return {event.event_id: event for event in events}


def _timed_calls(calls: Iterable[UnplacedCall], events: Events) -> Iterator[TimedCall]:
    for row in calls:
        event = events[row.event_id]
        yield TimedCall(
            row.event_id,
            row.correlation_id,
            event.node,
            row.cycle,
            AgentKey(row.trace_id, row.parent_id),
            row.started_at,
            row.occurred_at,
            event.kind in FINAL,
        )


def _end_of(project_id: int, answer: AnswerAttempts, events: Events) -> PostedEvent:
    """Return the event that no attempt was good; the same attempts have the same id."""
    last = events[answer.calls[-1].event_id]
    at = last.occurred_at + AFTER
    seed = to_json([project_id, str(last.event_id), len(answer.calls), answer.cycle])
    fields = {name: getattr(last, name) for name in SAME}
    return PostedEvent(
        event_id=uuid7(at, sha256(seed).digest()),
        name=event_name(last.node, EventKind.DEGRADED),
        occurred_at=at,
        correlation_id=last.correlation_id,
        cycle=answer.cycle,
        attempts=len(answer.calls),
        reason=_reason_of(last),
        status="failed",
        **fields,
    )


def _reason_of(last: Event) -> str:
    if last.kind == EventKind.PARSE_INVALID:
        return f"{last.node}_parse_failed"
    return last.call_error_type if last.call_error_type in REASONS else "provider_failed"


def _replace_ends(
    project_id: int, known: Collection[UUID], needed: Mapping[UUID, PostedEvent]
) -> None:
    """Delete the ends that are now wrong, and record the missing ones."""
    wrong = [identity for identity in known if identity not in needed]
    if wrong:
        UnplacedCall.objects.filter(project_id=project_id, event_id__in=wrong).delete()
        while forget_batch(project_id, OF_IDS, wrong, with_identities=True):
            pass
    missing = [event for identity, event in needed.items() if identity not in known]
    record(project_id, sorted(missing, key=lambda event: event.event_id))
    at = clock.now()
    UnplacedCall.objects.bulk_create(
        [
            UnplacedCall(
                project_id=project_id,
                correlation_id=event.correlation_id,
                event_id=event.event_id,
                occurred_at=event.occurred_at,
                received_at=at,
                started_at=event.occurred_at,
                is_end=True,
            )
            for event in missing
        ],
        ignore_conflicts=True,
    )

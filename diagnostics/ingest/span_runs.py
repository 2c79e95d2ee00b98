"""Runs reported by spans: once they are over, attempts are numbered and ends recorded.

1. A call without an attempt number is stored and counted as a call, not as a run.
2. A run is due when the root span of its trace has arrived, or 2 minutes after its last call.
3. Its calls are placed; attempts without an answer get a `degraded` event, recorded as if the
   agent had reported it.
4. A later span makes the run due again: all calls are placed again, and the difference is
   counted. A killed settlement has changed nothing, and repeating one changes nothing.

Calls are placed by when they began and how they ended:

1. Calls of one run belong together if one agent call made them for one node (and one cycle, if
   reported). The agent call is the parent of the call, else the innermost one around it.
2. By start time, a call is the next attempt of the oldest one that had failed and
   ended before, at most 10 minutes ago; if there is none, it is a first attempt.
3. A good call ends its attempts, as does one that the caller cancelled. Attempts without
   either are degraded.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from pydantic_core import to_json

from diagnostics import clock
from diagnostics.ingest.models import AgentSpan, UnplacedCall
from diagnostics.ingest.otlp.attributes import short
from diagnostics.ingest.otlp.conventions import FRAMEWORK_CLASSES, read_call
from diagnostics.ingest.otlp.drafts import DEFAULT_NODE, Draft
from diagnostics.ingest.otlp.mapping import LATEST_NS
from diagnostics.ingest.otlp.telemetry import Span, UnreadItem, time_of
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from diagnostics.store.deadlines import try_each_project
from diagnostics.store.models import Event
from diagnostics.store.run_models import AgentRun
from diagnostics.store.runs import OF_IDS, forget_batch, rebuild_runs
from diagnostics.store.sql import delete_before, execute
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
# The longest waits before an attempt are those for a rate limit.
LONGEST_WAIT = timedelta(minutes=10)
Events = Mapping[UUID, Event]


class AgentTime(NamedTuple):
    started_at: datetime
    ended_at: datetime
    node: str = ""
    """What it names; empty if nothing."""


class AgentKey(NamedTuple):
    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True)
class TimedCall:
    """The facts of a model call that decide its place among the others."""

    event_id: UUID
    run: str
    node: str
    """Empty if neither it nor an agent sent with it names one."""
    cycle: int
    parent: AgentKey
    started_at: datetime
    ended_at: datetime
    is_final: bool
    """Whether it was good, or cancelled: no other attempt at the answer follows."""


@dataclass(frozen=True, slots=True)
class AnswerAttempts:
    """The attempts at one answer, in order; its calls are of one cycle."""

    cycle: int
    calls: list[TimedCall]

    @property
    def is_degraded(self) -> bool:
        """Whether none of them was good, and the last one was not cancelled."""
        return not self.calls[-1].is_final

    def may_go_on(self, at: datetime) -> bool:
        """Whether a call that begins at this time or later can be the next attempt."""
        return self.is_degraded and at <= self.calls[-1].ended_at + LONGEST_WAIT

    def is_followed_by(self, call: TimedCall) -> bool:
        """Whether a call began soon after the last one ended, at its start time's precision."""
        earlier = self.calls[-1]
        ended_at = earlier.ended_at
        # JavaScript SDKs truncate start times to whole milliseconds, but not end times.
        if call.started_at.microsecond % 1000 == 0 and earlier.started_at < call.started_at:
            ended_at -= timedelta(microseconds=ended_at.microsecond % 1000)
        return ended_at <= call.started_at <= ended_at + LONGEST_WAIT


Agents = Mapping[AgentKey, AgentTime]


def group_attempts(calls: Iterable[TimedCall], agents: Agents) -> Iterator[AnswerAttempts]:
    """Yield the attempts at each requested answer, by run."""
    around: dict[str, list[AgentKey]] = defaultdict(list)
    for key in sorted(agents, key=lambda key: (agents[key].started_at, key)):
        around[key.trace_id].append(key)
    groups: dict[tuple[object, ...], list[TimedCall]] = defaultdict(list)
    for call in sorted(calls, key=lambda key: (key.started_at, key.ended_at, key.event_id)):
        enclosing = (
            key
            for key in reversed(around[call.parent.trace_id])
            if agents[key].started_at <= call.started_at <= agents[key].ended_at
        )
        agent = call.parent if call.parent in agents else next(enclosing, None)
        # A call sent before its agent is with those that were sent with it.
        node = call.node or (agents[agent].node if agent else "") or DEFAULT_NODE
        groups[call.run, agent, node, call.cycle].append(call)
    for group in groups.values():
        yield from _attempts_of(group)


def _attempts_of(calls: Sequence[TimedCall]) -> list[AnswerAttempts]:
    answers, waiting = list[AnswerAttempts](), list[AnswerAttempts]()
    for call in calls:
        # Calls come by their start: what this one is too late for, every later one is.
        waiting = [attempts for attempts in waiting if attempts.may_go_on(call.started_at)]
        before = [attempts for attempts in waiting if attempts.is_followed_by(call)]
        if before:
            before[0].calls.append(call)
        else:
            answers.append(AnswerAttempts(call.cycle + len(answers), [call]))
            waiting.append(answers[-1])
    return answers


def is_agent_call(span: Span) -> bool:
    attributes = span.attributes
    kind = (short(attributes, "openinference.span.kind") or "").upper()
    return short(attributes, "gen_ai.operation.name") in AGENT_OPERATIONS or kind == AGENT_KIND


@dataclass(frozen=True, slots=True)
class RequestAgents:
    """The calls of agents among the spans of one request, and which spans are below them.

    The conventions of OpenTelemetry and OpenInference name an agent on its own span, not on its
    calls: a call that names no node has that of the agent around it.
    """

    calls: list[Span] = field(default_factory=list)
    # The traces whose root span is among the spans.
    ended: set[str] = field(default_factory=set)
    _parents: dict[AgentKey, str] = field(default_factory=dict)
    _nodes: dict[AgentKey, str] = field(default_factory=dict)

    def noting(self, spans: Iterable[Span | UnreadItem]) -> Iterator[Span | UnreadItem]:
        """Yield the spans, and note each."""
        for span in spans:
            if isinstance(span, Span):
                self._note(span)
            yield span

    def _note(self, span: Span) -> None:
        key = AgentKey(span.trace_id, span.span_id)
        self._parents[key] = span.parent_id
        if not span.parent_id:
            self.ended.add(span.trace_id)
        if is_agent_call(span):
            node = read_call(span.attributes, scope=span.scope).node
            if node and node not in FRAMEWORK_CLASSES:
                self._nodes[key] = node
            if 0 < span.started_ns <= span.ended_ns < LATEST_NS:
                self.calls.append(span)

    def node_of(self, item: Span | Draft) -> str:
        """Return the node of the innermost named agent at or above a span; empty without one."""
        if not self._nodes:
            return ""
        key, passed = AgentKey(item.trace_id, item.span_id), list[AgentKey]()
        # Each span is passed once, though spans are deep or name each other as parents.
        while key in self._parents and key not in self._nodes:
            self._nodes[key] = ""
            passed.append(key)
            key = key._replace(span_id=self._parents[key])
        node = self._nodes.get(key, "")
        self._nodes.update(dict.fromkeys(passed, node))
        return node


def keep_agent_calls(project_id: int, agents: RequestAgents) -> None:
    """Keep the spans of agents, each with its node, until the runs that they are in are over."""
    at = clock.now()
    rows = [
        AgentSpan(
            project_id=project_id,
            trace_id=span.trace_id,
            span_id=span.span_id,
            received_at=at,
            started_at=time_of(span.started_ns),
            ended_at=time_of(span.ended_ns),
            node=agents.node_of(span),
        )
        for span in agents.calls
    ]
    AgentSpan.objects.bulk_create(rows, ignore_conflicts=True)


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
    before = clock.now() - KEPT
    tables = ("diagnostics_unplacedcall", "diagnostics_agentspan")
    return sum(delete_before(table, "received_at", before, PURGE_BATCH) for table in tables)


def _settle(project_id: int, ids: Sequence[str]) -> None:
    known = list(UnplacedCall.objects.filter(project_id=project_id, correlation_id__in=ids))
    events = _events_of(project_id, known)
    calls = [
        TimedCall(
            row.event_id,
            row.correlation_id,
            events[row.event_id].node if row.names_node else "",
            row.cycle,
            AgentKey(row.trace_id, row.parent_id),
            row.started_at,
            row.occurred_at,
            events[row.event_id].kind in FINAL,
        )
        for row in known
        if not row.is_end and row.event_id in events
    ]
    traces = {call.parent.trace_id for call in calls}
    agents = {
        AgentKey(row.trace_id, row.span_id): AgentTime(row.started_at, row.ended_at, row.node)
        for row in AgentSpan.objects.filter(project_id=project_id, trace_id__in=traces)
    }
    answers = list(group_attempts(calls, agents))
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
    reported = Event.objects.filter(
        project_id=project_id, correlation_id__in=ids, kind=EventKind.DEGRADED
    ).exclude(event_id__in=ends)
    runs_ended = set(reported.values_list("correlation_id", flat=True))
    needed = [
        _end_of(project_id, answer, events)
        for answer in answers
        if answer.is_degraded and answer.calls[0].run not in runs_ended
    ]
    _replace_ends(project_id, ends, {event.event_id: event for event in needed})
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


def _end_of(project_id: int, answer: AnswerAttempts, events: Events) -> PostedEvent:
    """Return the event that no attempt was good; the same attempts have the same id."""
    last = events[answer.calls[-1].event_id]
    at = last.occurred_at + AFTER
    seed = to_json([project_id, str(last.event_id), len(answer.calls), answer.cycle])
    if last.kind == EventKind.PARSE_INVALID:
        reason = f"{last.node}_parse_failed"
    else:
        reason = last.call_error_type if last.call_error_type in REASONS else "provider_failed"
    return PostedEvent(
        event_id=uuid7(at, sha256(seed).digest()),
        name=event_name(last.node, EventKind.DEGRADED),
        occurred_at=at,
        correlation_id=last.correlation_id,
        cycle=answer.cycle,
        attempts=len(answer.calls),
        reason=reason,
        status="failed",
        **{name: getattr(last, name) for name in SAME},
    )


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

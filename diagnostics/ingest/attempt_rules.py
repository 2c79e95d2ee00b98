"""Attempt numbers of calls without one, derived from when calls began and how they ended.

1. Calls of one run belong together if one agent call made them for one node (and one cycle, if
   reported). The agent call is the parent of the call, else the innermost one around it.
2. By start time, a call is the next attempt of the oldest one that had failed and
   ended before, at most 10 minutes ago; if there is none, it is a first attempt.
3. A good call ends its attempts, as does one that the caller cancelled. Attempts without
   either are degraded.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

# The longest waits before an attempt are those for a rate limit.
LONGEST_WAIT = timedelta(minutes=10)


class AgentTime(NamedTuple):
    started_at: datetime
    ended_at: datetime


class AgentKey(NamedTuple):
    """The span of an agent call."""

    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True)
class TimedCall:
    """The facts of a model call that decide its place among the others."""

    event_id: UUID
    run: str
    node: str
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
        agent = _agent_of(call, agents, around[call.parent.trace_id])
        groups[call.run, agent, call.node, call.cycle].append(call)
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


def _agent_of(call: TimedCall, agents: Agents, around: Sequence[AgentKey]) -> AgentKey | None:
    if call.parent in agents:
        return call.parent
    return next(
        (
            key
            for key in reversed(around)
            if agents[key].started_at <= call.started_at <= agents[key].ended_at
        ),
        None,
    )

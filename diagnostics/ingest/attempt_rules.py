"""Which attempt a call was, where no agent says so: told by when calls began and how they ended.

1. Calls of one run belong together that one agent call made for one node (and one cycle, where
   that is told). The agent call is the parent of the call, else the innermost one around it.
2. In the order of their begin, a call is the next attempt of the oldest one that had failed and
   ended before; without such a one it is a first attempt.
3. A good call ends its attempts. Those that end otherwise found no answer: degraded.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID


class AgentTime(NamedTuple):
    """When an agent call went on."""

    started_at: datetime
    ended_at: datetime


class AgentKey(NamedTuple):
    """The span of an agent call."""

    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True)
class TimedCall:
    """One call of a model, as far as its place among the others depends on it."""

    event_id: UUID
    run: str
    node: str
    cycle: int
    parent: AgentKey
    started_at: datetime
    ended_at: datetime
    is_good: bool


@dataclass(frozen=True, slots=True)
class AttemptLadder:
    """The attempts at one answer, in order; its calls are of one cycle."""

    cycle: int
    calls: list[TimedCall]

    @property
    def is_degraded(self) -> bool:
        """Whether none of them was good."""
        return not self.calls[-1].is_good

    def is_followed_by(self, call: TimedCall) -> bool:
        """Whether a later call can be the next attempt."""
        return self.is_degraded and _is_after(call, self.calls[-1])


Agents = Mapping[AgentKey, AgentTime]


def find_ladders(calls: Iterable[TimedCall], agents: Agents) -> Iterator[AttemptLadder]:
    """Return the attempts of each answer that was asked for, by run."""
    around: dict[str, list[AgentKey]] = defaultdict(list)
    for key in sorted(agents, key=lambda one: (agents[one].started_at, one)):
        around[key.trace_id].append(key)
    groups: dict[tuple[object, ...], list[TimedCall]] = defaultdict(list)
    for call in sorted(calls, key=lambda one: (one.started_at, one.ended_at, one.event_id)):
        agent = _agent_of(call, agents, around[call.parent.trace_id])
        groups[call.run, agent, call.node, call.cycle].append(call)
    for together in groups.values():
        yield from _ladders_of(together)


def _ladders_of(calls: Sequence[TimedCall]) -> list[AttemptLadder]:
    found: list[AttemptLadder] = []
    for call in calls:
        before = [ladder for ladder in found if ladder.is_followed_by(call)]
        if before:
            before[0].calls.append(call)
        else:
            found.append(AttemptLadder(call.cycle + len(found), [call]))
    return found


def _is_after(call: TimedCall, earlier: TimedCall) -> bool:
    """Whether a call began when an earlier one had ended, as exactly as its begin is told."""
    ended_at = earlier.ended_at
    # SDKs for JavaScript cut off begins to whole milliseconds, and ends not.
    if call.started_at.microsecond % 1000 == 0 and earlier.started_at < call.started_at:
        ended_at -= timedelta(microseconds=ended_at.microsecond % 1000)
    return ended_at <= call.started_at


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

"""Attempts follow from when calls began and how they ended, whatever order they come in."""

from datetime import timedelta
from itertools import permutations
from uuid import UUID

import pytest

from diagnostics.ingest.span_runs import (
    AgentKey,
    AgentTime,
    AnswerAttempts,
    TimedCall,
    group_attempts,
)
from tests.diagnostics.builders import AT

Shape = tuple[int, list[int], bool]


def second(number: float) -> timedelta:
    return timedelta(seconds=number)


def call(
    number: int, begin: float, end: float, *, is_good: bool = False, **changes: object
) -> TimedCall:
    fields = {"run": "r", "node": "plan", "cycle": 1, "parent": AgentKey("t", ""), **changes}
    return TimedCall(
        event_id=UUID(int=number),
        started_at=AT + second(begin),
        ended_at=AT + second(end),
        is_final=is_good,
        **fields,  # type: ignore[arg-type]
    )


def shape(*calls: TimedCall, agents: dict[AgentKey, AgentTime] | None = None) -> list[Shape]:
    """Cycle, calls by number, and whether none was good."""
    found = group_attempts(calls, agents or {})
    told = [
        (ladder.cycle, [one.event_id.int for one in ladder.calls], ladder.is_degraded)
        for ladder in found
    ]
    return sorted(told, key=lambda one: one[1])


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        # Good at once.
        ([call(1, 0, 1, is_good=True)], [(1, [1], False)]),
        # Recovered on the second attempt.
        ([call(1, 0, 1), call(2, 1, 2, is_good=True)], [(1, [1, 2], False)]),
        # Never.
        ([call(1, 0, 1), call(2, 1, 2), call(3, 2, 3)], [(1, [1, 2, 3], True)]),
        # Half an hour later it is another question.
        ([call(1, 0, 1), call(2, 1801, 1802, is_good=True)], [(1, [1], True), (2, [2], False)]),
        ([call(1, 0, 1), call(2, 301, 302, is_good=True)], [(1, [1, 2], False)]),
        # What follows a good answer asks for another one.
        (
            [call(1, 0, 1, is_good=True), call(2, 1, 2), call(3, 2, 3, is_good=True)],
            [(1, [1], False), (2, [2, 3], False)],
        ),
        # A call that began before another failed is no attempt after it.
        ([call(1, 0, 5), call(2, 1, 2, is_good=True)], [(1, [1], True), (2, [2], False)]),
        # A begin that was cut off to milliseconds, of a call that followed at once.
        ([call(1, 0, 1.000958), call(2, 1, 2, is_good=True)], [(1, [1, 2], False)]),
        # Two that began in the same millisecond, and one told exactly: side by side.
        ([call(1, 0, 0.0003), call(2, 0, 0.0004)], [(1, [1], True), (2, [2], True)]),
        ([call(1, 0, 1.000958), call(2, 1.000957, 2)], [(1, [1], True), (2, [2], True)]),
        # Of two that failed side by side, each is followed by one.
        (
            [call(1, 0, 1), call(2, 0.5, 1.5), call(3, 2, 3, is_good=True), call(4, 2, 3)],
            [(1, [1, 3], False), (2, [2, 4], True)],
        ),
        # Nodes and runs are told apart, and cycles where they are told.
        ([call(1, 0, 1), call(2, 1, 2, node="check")], [(1, [1], True), (1, [2], True)]),
        ([call(1, 0, 1), call(2, 1, 2, run="s")], [(1, [1], True), (1, [2], True)]),
        ([call(1, 0, 1), call(2, 1, 2, cycle=2)], [(1, [1], True), (2, [2], True)]),
    ],
)
def test_calls_are_attempts_at_answers(calls: list[TimedCall], expected: list[Shape]) -> None:
    for order in permutations(calls):
        assert shape(*order) == expected


def test_a_call_is_compared_only_with_attempts_that_it_may_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[TimedCall] = []

    def compare(attempts: AnswerAttempts, later: TimedCall) -> bool:
        compared.append(later)
        return False

    monkeypatch.setattr(AnswerAttempts, "is_followed_by", compare)
    good = [call(number, number, number + 1, is_good=True) for number in range(100)]
    bad = [call(number, 700 * number, 700 * number + 1) for number in range(1, 100)]
    assert len(shape(*good)) == 100
    assert len(shape(*bad)) == 99
    assert compared == []


def test_attempts_are_counted_within_one_agent_call() -> None:
    first, later = AgentKey("t", "a"), AgentKey("t", "b")
    agents = {
        first: AgentTime(AT, AT + second(2)),
        later: AgentTime(AT + second(3), AT + second(5)),
    }
    inside = [call(1, 0, 1, parent=first), call(2, 4, 5, is_good=True, parent=later)]
    assert shape(*inside, agents=agents) == [(1, [1], True), (1, [2], False)]
    # Told by their times, where other spans lie between agent and call.
    below = [
        call(1, 0, 1, parent=AgentKey("t", "x")),
        call(2, 1, 2, parent=AgentKey("t", "y")),
        call(3, 4, 5, is_good=True, parent=AgentKey("t", "z")),
    ]
    assert shape(*below, agents=agents) == [(1, [1, 2], True), (1, [3], False)]


def test_only_a_call_that_names_no_node_has_that_of_its_agent() -> None:
    key = AgentKey("t", "a")
    made = [call(1, 0, 1, node="", parent=key), call(2, 1, 2, is_good=True, parent=key)]
    named = {key: AgentTime(AT, AT + second(9), "plan")}
    assert shape(*made, agents=named) == [(1, [1, 2], False)]
    apart = [(1, [1], True), (1, [2], False)]
    assert shape(*made, agents={key: AgentTime(AT, AT + second(9))}) == apart
    made[0] = call(1, 0, 1, node="chat", parent=key)
    assert shape(*made, agents=named) == apart


def test_the_innermost_of_nested_agent_calls_counts() -> None:
    outer, inner = AgentKey("t", "o"), AgentKey("t", "i")
    agents = {
        outer: AgentTime(AT, AT + second(9)),
        inner: AgentTime(AT + second(2), AT + second(4)),
    }
    calls = [call(1, 0, 1), call(2, 3, 4), call(3, 5, 6, is_good=True)]
    assert shape(*calls, agents=agents) == [(1, [1, 3], False), (1, [2], True)]

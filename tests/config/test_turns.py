"""Turns at threads: shared fairly, and none is lost."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from config.turns import Turn, Turns


def programs(holder: str) -> Turn:
    return Turn("programs", holder)


async def settle() -> None:
    """Let every waiter go on."""
    for _ in range(5):
        await asyncio.sleep(0)


class Queue:
    """Waiters for turns, and the order in which they got theirs."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.began: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def wait(self, *holders: str) -> None:
        """Let each of them wait, in this order."""
        for holder in holders:
            self.tasks.append(asyncio.create_task(self._take(holder)))
            await settle()

    async def _take(self, holder: str) -> None:
        await self.turns.take(programs(holder))
        self.began.append(holder)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_the_holder_with_the_fewest_turns_is_next() -> None:
    async def story() -> None:
        queue = Queue(turns := Turns(2, 2, 2))
        await queue.wait("greedy", "greedy", "greedy", "greedy", "modest")
        turns.release(programs("greedy"))
        await settle()
        assert queue.began == ["greedy", "greedy", "modest"]

    run(story())


def test_equals_alternate() -> None:
    async def story() -> None:
        queue = Queue(turns := Turns(1, 1, 1))
        await queue.wait("a", "a", "a", "b", "b")
        for _ in range(4):
            turns.release(programs(queue.began[-1]))
            await settle()
        assert queue.began == ["a", "a", "b", "a", "b"]

    run(story())


def test_no_holder_takes_all_of_a_lane_and_no_lane_takes_all_turns() -> None:
    turns = Turns(4, 3, 2)
    assert [turns.take_free(programs("a")) for _ in range(3)] == [True, True, False]
    assert [turns.take_free(programs("b")) for _ in range(2)] == [True, False]
    assert [turns.take_free(Turn("pages", "a")) for _ in range(2)] == [True, False]


@pytest.mark.parametrize("is_granted", [False, True])
def test_a_waiter_that_gives_up_takes_no_turn_with_it(is_granted: bool) -> None:
    async def story() -> None:
        queue = Queue(turns := Turns(1, 1, 1))
        await queue.wait("a", "b")
        if is_granted:
            turns.release(programs("a"))
        queue.tasks[-1].cancel()
        await settle()
        if not is_granted:
            turns.release(programs("a"))
        assert queue.began == ["a"]
        assert turns.take_free(programs("c"))

    run(story())

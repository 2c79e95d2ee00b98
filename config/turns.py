"""Turns at the threads of a web process, shared fairly between those who wait for one."""

from asyncio import Future, get_running_loop
from collections import Counter, deque
from collections.abc import Hashable
from contextlib import suppress
from typing import NamedTuple


class Turn(NamedTuple):
    """A lane, as programs or pages, and whose request it is."""

    lane: str
    holder: Hashable


class Turns:
    """A number of turns at the same time.

    Lanes and holders have limits. The next turn goes to the holder with the fewest, and among
    equals to the one that has waited longest.
    """

    def __init__(self, count: int, most_of_lane: int, most_of_holder: int) -> None:
        self._free = count
        self._most_of_lane = most_of_lane
        self._most_of_holder = most_of_holder
        self._taken = Counter[Turn]()
        self._lanes = Counter[str]()
        self._waiting: dict[Turn, deque[Future[None]]] = {}

    def take_free(self, turn: Turn) -> bool:
        """Take a turn if one is free; then nobody who may have it waits."""
        if not self._is_open(turn):
            return False
        self._take(turn)
        return True

    async def take(self, turn: Turn) -> None:
        if self.take_free(turn):
            return
        waiter: Future[None] = get_running_loop().create_future()
        self._waiting.setdefault(turn, deque()).append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():
                self.release(turn)  # it came together with the cancellation
            else:
                waiters = self._waiting.get(turn, deque())
                with suppress(ValueError):
                    waiters.remove(waiter)
                if not waiters:
                    self._waiting.pop(turn, None)
            raise

    def release(self, turn: Turn) -> None:
        self._free += 1
        self._lanes[turn.lane] -= 1
        self._taken[turn] -= 1
        if not self._taken[turn]:
            del self._taken[turn]
        while ready := [turn for turn in self._waiting if self._is_open(turn)]:
            # The oldest waiter of a holder was put first, and a holder back when it got a turn.
            following = min(ready, key=self._taken.__getitem__)
            waiters = self._waiting.pop(following)
            self._take(following)
            waiters.popleft().set_result(None)
            if waiters:
                self._waiting[following] = waiters

    def _is_open(self, turn: Turn) -> bool:
        return (
            self._free > 0
            and self._lanes[turn.lane] < self._most_of_lane
            and self._taken[turn] < self._most_of_holder
        )

    def _take(self, turn: Turn) -> None:
        self._free -= 1
        self._lanes[turn.lane] += 1
        self._taken[turn] += 1

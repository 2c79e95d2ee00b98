"""Calls told apart by how long ago the last failure was: companions say less."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

SOON = 3
"""So many calls after a failure another one may still belong to the same trouble."""
LONG_AGO = SOON + 1


class KindCounts(NamedTuple):
    """Calls of one kind, and how many of them failed; parts where their order is not known."""

    calls: float = 0
    failed: float = 0

    @property
    def share(self) -> float:
        """The share that failed, 0 without a call."""
        return self.failed / self.calls if self.calls else 0.0

    def plus(self, other: "KindCounts", sign: int = 1) -> "KindCounts":
        """Add the other, or take it away."""
        return KindCounts(self.calls + sign * other.calls, self.failed + sign * other.failed)


class Split(NamedTuple):
    """Calls after good ones, right after a failure, and soon (2 or 3 calls) after one."""

    fresh: KindCounts = KindCounts()
    next: KindCounts = KindCounts()
    soon: KindCounts = KindCounts()

    @property
    def calls(self) -> float:
        """All calls."""
        return self.fresh.calls + self.next.calls + self.soon.calls

    def plus(self, other: "Split", sign: int = 1) -> "Split":
        """Add the other, or take it away."""
        pairs = zip(self, other, strict=True)
        return Split(*(mine.plus(its, sign) for mine, its in pairs))


NOTHING = Split()


class BurstCounts:
    """A split that grows: calls are added to it one by one, which is what happens most."""

    __slots__ = ("_counts", "calls")

    def __init__(self, split: Split = NOTHING) -> None:
        """Begin with some calls."""
        self._counts = [count for kind in split for count in kind]
        self.calls = split.calls

    def add(self, split: Split) -> None:
        """Add calls."""
        counts, place = self._counts, 0
        for calls, failed in split:
            if calls:
                counts[place] += calls
                counts[place + 1] += failed
                self.calls += calls
            place += 2

    def split(self) -> Split:
        """Return all of them."""
        n = self._counts
        return Split(KindCounts(n[0], n[1]), KindCounts(n[2], n[3]), KindCounts(n[4], n[5]))


def split_calls(calls: int, failed: int, since_failure: int) -> tuple[Split, int]:
    """Tell calls apart; `since_failure` counts from the last failure, 1 being the next call.

    Returns them with `since_failure` of what follows. Nobody knows the order inside a
    bucket: one failure, or few good calls, are taken to be spread evenly; of many calls
    with several failures every kind gets what chance would give it.
    """
    if calls == 1:
        return _ONE_CALL[failed][since_failure]
    return _split_calls(calls, failed, since_failure)


def _split_calls(calls: int, failed: int, since_failure: int) -> tuple[Split, int]:
    if not failed:
        fresh, following, soon = _passed(calls, since_failure)
        split = Split(KindCounts(fresh), KindCounts(following), KindCounts(soon))
        return split, min(since_failure + calls, LONG_AGO)
    gap, rest = divmod(calls - failed, failed + 1)
    if failed > 1 and gap:
        return _shuffled(calls, failed), min(1 + gap, LONG_AGO)
    counts = [0, 0, 0]
    faults = [0, 0, 0]
    at = _walk(counts, gap + rest, since_failure)
    _fail(counts, faults, at, 1)
    after_gap = _walk([0, 0, 0], gap, 1)
    for kind, passed in enumerate(_passed(gap)):
        counts[kind] += passed * failed
    _fail(counts, faults, after_gap, failed - 1)
    return _split(after_gap, faults, counts)


def _shuffled(calls: int, failed: int) -> Split:
    """Tell calls apart as on average of all orders of them.

    Spread evenly, nearly every failure would come after good calls, and those would seem
    to fail far more often than calls do.
    """
    good = 1 - failed / calls
    following = failed * (calls - 1) / calls
    soon = calls * (good - good**3)
    another = failed - 1
    next_failed, soon_failed = following * another / (calls - 1), soon * another / (calls - 2)
    fresh = KindCounts(calls - following - soon, failed - next_failed - soon_failed)
    return Split(fresh, KindCounts(following, next_failed), KindCounts(soon, soon_failed))


def _walk(counts: list[int], good: int, since: int) -> int:
    """Count good calls in a row by kind; return where the next call stands."""
    for kind, passed in enumerate(_passed(good, since)):
        counts[kind] += passed
    return min(since + good, LONG_AGO)


def _passed(good: int, since: int = 1) -> tuple[int, int, int]:
    following = 1 if since == 1 and good else 0
    soon = max(0, min(since + good, LONG_AGO) - max(since, 2))
    return good - following - soon, following, soon


def _fail(counts: list[int], faults: list[int], since: int, times: int) -> None:
    kind = 1 if since == 1 else 2 if since <= SOON else 0
    counts[kind] += times
    faults[kind] += times


def _split(since: int, faults: list[int], counts: list[int]) -> tuple[Split, int]:
    return Split(*map(KindCounts, counts, faults)), since


_ONE_CALL = [[_split_calls(1, failed, since) for since in range(LONG_AGO + 1)] for failed in (0, 1)]
HOUR_SECONDS = 3600
Numbers = Sequence[float]
"""A block as plain numbers: its time, then calls and failures of each kind."""


class Block(NamedTuple):
    """Some calls in a row, and when the last of them was."""

    at: float
    split: Split


def append_to(blocks: deque[Block], block: Block, seconds: int = HOUR_SECONDS) -> bool:
    """Add a block to the last one where both are of one hour, or of so many seconds.

    Returns whether they were.
    """
    last = blocks[-1] if blocks else None
    if last is not None and block.at // seconds == last.at // seconds:
        blocks[-1] = Block(block.at, last.split.plus(block.split))
        return True
    blocks.append(block)
    return False


def write_block(block: Block) -> Numbers:
    """Return a block as numbers."""
    return [block.at, *(round(number, 3) for kind in block.split for number in kind)]


def read_block(numbers: Numbers) -> Block:
    """Read what `write_block` gave."""
    at, *counts = numbers
    return Block(at, Split(*map(KindCounts, counts[::2], counts[1::2])))

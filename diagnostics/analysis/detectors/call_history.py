"""Calls told apart by how long ago the last failure was: companions say less."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from diagnostics.analysis.detectors.results import WindowCounts

SOON = 3
"""So many calls after a failure another one may still belong to the same trouble."""
LONG_AGO = SOON + 1


class Split(NamedTuple):
    """Calls after good ones, right after a failure, and soon (2 or 3 calls) after one."""

    fresh: WindowCounts = WindowCounts()
    next: WindowCounts = WindowCounts()
    soon: WindowCounts = WindowCounts()

    @property
    def calls(self) -> int:
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
        return Split(WindowCounts(n[0], n[1]), WindowCounts(n[2], n[3]), WindowCounts(n[4], n[5]))


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
        split = Split(WindowCounts(fresh), WindowCounts(following), WindowCounts(soon))
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
    """Tell calls apart as on average of all orders: each kind fails as often as the whole.

    Spread evenly, nearly every failure would come after good calls, and those would seem
    to fail far more often than calls do.
    """
    share = failed / calls
    fresh = (1 - share) ** 3
    kinds = _allot(calls, (fresh, share, 1 - fresh - share))
    faults = _allot(failed, [kind / calls for kind in kinds])
    return Split(*map(WindowCounts, kinds, faults))


def _allot(total: int, shares: Sequence[float]) -> list[int]:
    """Return whole numbers in these shares, which add up to 1: largest remainders get one more."""
    exact = [total * share for share in shares]
    whole = [int(one) for one in exact]
    places = sorted(range(len(whole)), key=lambda n: whole[n] - exact[n])
    for place in places[: total - sum(whole)]:
        whole[place] += 1
    return whole


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
    return Split(*map(WindowCounts, counts, faults)), since


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
    return [block.at, *(number for kind in block.split for number in kind)]


def read_block(numbers: Numbers) -> Block:
    """Read what `write_block` gave."""
    at, *counts = numbers
    n = [int(count) for count in counts]
    kinds = WindowCounts(n[0], n[1]), WindowCounts(n[2], n[3]), WindowCounts(n[4], n[5])
    return Block(at, Split(*kinds))

"""Since when: the moment that best divides a stretch into usual and worse."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log
from typing import NamedTuple

LOWEST = 0.002
HIGHEST = 0.98
LIKELY = 1.92
"""Moments whose log likelihood is within this of the best are a 95 % interval."""
POSSIBLE = 5.0
"""Within this it may have been, at the utmost."""
OVER = 7.0
"""How much likelier (log) it must be that a worsening has ended than that it lasts."""
LEAST_AFTER = 20
"""Calls after its end, without which it lasts."""


class Bucket(NamedTuple):
    """Calls and failures of one bucket, and the failures that are usual for them."""

    calls: int
    failed: int
    expected: float


@dataclass(frozen=True, slots=True)
class Onset:
    """Indexes of buckets: the likeliest first bad one, and between which it lies."""

    at: int
    low: int
    high: int
    gain: float
    """How much likelier a change is than none (log)."""
    rate: float = 0.0
    usual: float = 0.0
    earliest: int = 0
    latest: int = 0
    """Between which it must lie."""
    over_at: int | None = None
    """The first bucket after it, when it has ended."""

    @property
    def is_marked(self) -> bool:
        """Whether so much more fails that somebody would want to know."""
        return self.rate >= LEAST_FACTOR * self.usual and (
            self.rate >= self.usual + LEAST_POINTS
        )


LEAST_FACTOR = 1.35
LEAST_POINTS = 0.015


def find_onset(buckets: Sequence[Bucket], known: float) -> Onset | None:
    """Find the first bucket of a worsening; None when there is none.

    `known` is the number of earlier calls that the expectation rests on. A candidate is
    weighed by how much likelier two rates are than one, before it (with what was known)
    and after it; linear in the number of buckets.
    """
    whole = _sums(buckets)
    usual = whole[-1].expected / whole[-1].calls if whole[-1].calls else LOWEST
    gains = [
        _gain(_less(whole[-1], whole[at]), whole[at], usual, known)
        if bucket.calls
        else -1.0
        for at, bucket in enumerate(buckets)
    ]
    best = max(range(len(gains)), key=gains.__getitem__, default=None)
    if best is None or gains[best] <= 0:
        return None
    ended = _find_end(buckets, best)
    worse = _less(whole[ended if ended is not None else -1], whole[best])
    return Onset(
        best,
        *_ends(gains, gains[best] - LIKELY),
        gains[best],
        worse.failed / worse.calls,
        worse.expected / worse.calls,
        *_ends(gains, gains[best] - POSSIBLE),
        ended,
    )


def _ends(gains: Sequence[float], least: float) -> tuple[int, int]:
    within = [at for at, gain in enumerate(gains) if gain >= least]
    return within[0], within[-1]


def _sums(buckets: Iterable[Bucket]) -> list[Bucket]:
    """Give the sums before each bucket, and that of all."""
    return list(accumulate(buckets, _added, initial=Bucket(0, 0, 0.0)))


def _added(one: Bucket, other: Bucket) -> Bucket:
    calls, failed = one.calls + other.calls, one.failed + other.failed
    return Bucket(calls, failed, one.expected + other.expected)


def _less(one: Bucket, other: Bucket) -> Bucket:
    calls, failed = one.calls - other.calls, one.failed - other.failed
    return Bucket(calls, failed, max(one.expected - other.expected, 0.0))


def _gain(after: Bucket, before: Bucket, usual: float, known: float) -> float:
    """Weigh two rates against one; what was known counts as calls before."""
    if not after.calls:
        return 0.0
    factor = (known * usual + before.failed) / (known * usual + before.expected or 1.0)
    old = _within(after.expected / after.calls * factor)
    new = _within(after.failed / after.calls)
    if new <= old:
        return 0.0
    calls = known + before.calls
    both = (calls * old + after.calls * new) / (calls + after.calls)
    return calls * _distance(old, both) + after.calls * _distance(new, both)


def _find_end(buckets: Sequence[Bucket], begun: int) -> int | None:
    """Find where a worsening ended, if it is likely that it did."""
    sums = _sums(buckets[begun:])
    whole, best, found = sums[-1], OVER, None
    lasting = whole.calls * _own(whole)
    for at in range(1, len(sums) - 1):
        within, after = sums[at], _less(whole, sums[at])
        if not within.calls or after.calls < LEAST_AFTER:
            continue
        usual = _within(after.expected / after.calls)
        seen = _within(after.failed / after.calls)
        calm = after.calls * (_own(after) - _distance(seen, usual))
        gain = within.calls * _own(within) + calm - lasting
        if gain > best:
            best, found = gain, begun + at
    return found


def _own(bucket: Bucket) -> float:
    """The log likelihood a call, at the rate that was seen."""
    share = _within(bucket.failed / bucket.calls)
    return share * log(share) + (1 - share) * log(1 - share)


def _distance(share: float, other: float) -> float:
    """How much likelier a share makes itself than another one does (log, a call)."""
    return share * log(share / other) + (1 - share) * log((1 - share) / (1 - other))


def _within(share: float) -> float:
    return min(max(share, LOWEST), HIGHEST)

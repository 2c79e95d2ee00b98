"""Since when: the moment that best divides a stretch into usual and worse.

The verdict, the rows and curves of series and those of failure groups all ask here.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log
from typing import NamedTuple

from diagnostics.store.windows import RunBucket

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
SURE = 0.5
"""Evidence beyond what the number of series and slots explains by itself (log)."""
LEAST_MORE = 3.5
"""Failures beyond the usual, below which nothing is said."""
LEAST_FACTOR = 1.35
LEAST_POINTS = 0.015
ROUNDED = 1 - 1e-9
"""What floats may take off a bound that is asked for twice."""
USUAL_WHEN_NEW = 0.02
"""The share of runs that fail where nothing is known."""
KNOWN_WHEN_NEW = 20


class Slot(NamedTuple):
    """Calls and failures of one slot of time, and the failures that are usual for them."""

    calls: int
    failed: int
    expected: float


@dataclass(frozen=True, slots=True)
class OnsetSlots:
    """Indexes of slots: the likeliest first bad one, and between which it lies."""

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
    """The first slot after it, when it has ended."""

    @property
    def is_marked(self) -> bool:
        """Whether so much more fails that somebody would want to know."""
        return self.rate >= LEAST_FACTOR * self.usual and (self.rate >= self.usual + LEAST_POINTS)


def find_onset(slots: Sequence[Slot], known: float, least: float = 0.0) -> OnsetSlots | None:
    """Find the first slot of a worsening; None when there is none that gains so much.

    `known` is the number of earlier calls that the expectation rests on. A candidate is
    weighed by how much likelier two rates are than one, before it (with what was known)
    and after it; linear in the number of slots.
    """
    # A worsening begins with a failure: most searches end after the few slots with one.
    failing = [at for at, slot in enumerate(slots) if slot.failed]
    if not failing:
        return None
    sums = _sums(slots)
    if max(_gains(sums, failing, known)) <= least:
        return None
    called = [at for at, slot in enumerate(slots) if slot.calls]
    gains = [-1.0] * len(slots)
    for at, gain in zip(called, _gains(sums, called, known), strict=True):
        gains[at] = gain
    best = max(range(len(gains)), key=gains.__getitem__)
    ended = _find_end(slots, best)
    worse = _less(sums[ended if ended is not None else -1], sums[best])
    low, high = _ends(gains, gains[best] - LIKELY)
    return OnsetSlots(
        best,
        _before_silence(low, slots),
        high,
        gains[best],
        worse.failed / worse.calls,
        worse.expected / worse.calls,
        *_ends(gains, gains[best] - POSSIBLE),
        ended,
    )


def alarm_of(slots: int, looks: int = 1) -> float:
    """Return the gain that exceeds chance, given at how many places one looks."""
    return log(slots) + log(max(looks, 1)) / 2 + SURE


def is_much(onset: OnsetSlots, slots: Sequence[Slot]) -> bool:
    """Whether enough fails beyond the usual for anybody to speak of it."""
    worse = slots[onset.at : onset.over_at]
    return sum(slot.failed - slot.expected for slot in worse) >= LEAST_MORE


def lasting_onset(
    buckets: Sequence[RunBucket], usual: float | None, known: int
) -> OnsetSlots | None:
    """Find since when one series fails more than usual, and goes on to; else None.

    `usual` is the share of `known` earlier runs that failed, None where there were none.
    """
    share = USUAL_WHEN_NEW if usual is None else max(usual, LOWEST)
    if not _may_last(buckets, share):
        return None
    slots = [Slot(one.runs, one.degraded, one.runs * share) for one in buckets]
    least = alarm_of(len(slots)) if slots else 0.0
    found = find_onset(slots, known + KNOWN_WHEN_NEW, least)
    if found is None or found.over_at is not None:
        return None
    return found if found.is_marked and is_much(found, slots) else None


def _may_last(buckets: Sequence[RunBucket], share: float) -> bool:
    """Whether from any bucket on so much fails that it would be told.

    It is what `is_marked` and `is_much` ask of the one that is found, asked of all: most
    series are well, and no more is needed to know it.
    """
    calls = failed = 0
    for bucket in reversed(buckets):
        calls += bucket.runs
        failed += bucket.degraded
        least = max(share * LEAST_FACTOR, share + LEAST_POINTS) * calls
        if failed >= max(least, share * calls + LEAST_MORE) * ROUNDED:
            return True
    return False


def _ends(gains: Sequence[float], least: float) -> tuple[int, int]:
    within = [at for at, gain in enumerate(gains) if gain >= least]
    return within[0], within[-1]


def _before_silence(at: int, slots: Sequence[Slot]) -> int:
    """Return the first slot of the silence before a slot: it may be bad already."""
    while at and not slots[at - 1].calls:
        at -= 1
    return at


def _sums(slots: Iterable[Slot]) -> list[Slot]:
    """Return the sums before each slot, and that of all."""
    columns = (accumulate(column) for column in zip(*slots, strict=True))
    return [Slot(0, 0, 0.0), *map(Slot, *columns)]


def _less(one: Slot, other: Slot) -> Slot:
    calls, failed = one.calls - other.calls, one.failed - other.failed
    return Slot(calls, failed, max(one.expected - other.expected, 0.0))


def _gains(sums: Sequence[Slot], places: Iterable[int], known: float) -> Iterator[float]:
    """Weigh two rates against one, parted at each place; what was known counts as before.

    It runs for every slot of every pool and kind: plain numbers, no tuples in between.
    """
    all_calls, all_failed, all_expected = sums[-1]
    usual = all_expected / all_calls if all_calls else LOWEST
    weight = known * usual
    for at in places:
        before_calls, before_failed, before_expected = sums[at]
        after = all_calls - before_calls
        factor = (weight + before_failed) / (weight + before_expected or 1.0)
        expected = max(all_expected - before_expected, 0.0)
        old = _within(expected / after * factor)
        new = _within((all_failed - before_failed) / after)
        if new <= old:
            yield 0.0
            continue
        calls = known + before_calls
        both = (calls * old + after * new) / (calls + after)
        yield calls * _distance(old, both) + after * _distance(new, both)


def _find_end(slots: Sequence[Slot], begun: int) -> int | None:
    """Find where a worsening ended, if it is likely that it did."""
    sums = _sums(slots[begun:])
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


def _own(slot: Slot) -> float:
    """The log likelihood a call, at the rate that was seen."""
    share = _within(slot.failed / slot.calls)
    return share * log(share) + (1 - share) * log(1 - share)


def _distance(share: float, other: float) -> float:
    """How much likelier a share makes itself than another one does (log, a call)."""
    return share * log(share / other) + (1 - share) * log((1 - share) / (1 - other))


def _within(share: float) -> float:
    return min(max(share, LOWEST), HIGHEST)

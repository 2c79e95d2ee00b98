"""Since when: the moment that best divides a stretch into usual and worse.

The verdict, the rows and curves of series and those of failure groups all ask here.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import exp, log, sqrt
from typing import NamedTuple

from diagnostics.store.windows import RunBucket

LOWEST = 0.002
HIGHEST = 0.98
LIKELY = 0.97
POSSIBLE = 0.999
"""How likely, by this model, the onset lies in the stated 95 % interval, and in the widest one.

Calls depend on one another more than `_spread` sees: 0.95 held 93 of 100 generated onsets.
"""
MOST_SPREAD = 5.0
FEWEST_PAIRS = 8
AGAIN = 3.5
"""The gain of a worsening behind a recovery."""
OVER = 6.0
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
SURE_TREND = 2.6
"""Standard deviations from which on a trouble is told to be getting worse."""
RISEN = 1.3
"""How many times as much must fail lately as at first."""
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
    spread: float = 1.0

    @property
    def is_marked(self) -> bool:
        """Whether so much more fails that somebody would want to know."""
        return self.rate >= LEAST_FACTOR * self.usual and (self.rate >= self.usual + LEAST_POINTS)


def find_onset(slots: Sequence[Slot], known: float, least: float = 0.0) -> OnsetSlots | None:
    """Find the first slot of the latest worsening; None when there is none that gains so much.

    `known` is the number of earlier calls that the expectation rests on. A candidate is
    weighed by how much likelier two rates are than one, before it (with what was known)
    and after it; linear in the number of slots. Behind a recovery the search begins anew.
    """
    found = _split(slots, 0, known, least)
    while found is not None:
        calm = _find_calm(slots, found)
        if calm is None:
            return found
        # What is calm from its first slot on would be found again and again.
        begin = max(calm[0], found.at + 1)
        again = _split(slots, begin, known, AGAIN) if calm[1] < len(slots) else None
        if again is None:
            return replace(found, over_at=calm[0])
        found = again
    return None


def _split(slots: Sequence[Slot], begin: int, known: float, least: float) -> OnsetSlots | None:
    """Find the slot, from `begin` on, that best divides the rest into usual and worse."""
    rest = slots[begin:]
    # A worsening begins with a failure: most searches end after the few slots with one.
    failing = [at for at, slot in enumerate(rest) if slot.failed]
    if not failing:
        return None
    sums = _sums(rest)
    if max(_gains(sums, failing, known)) <= least:
        return None
    called = [at for at, slot in enumerate(rest) if slot.calls]
    gains = [0.0] * len(rest)
    for at, gain in zip(called, _gains(sums, called, known), strict=True):
        gains[at] = gain
    best = max(called, key=gains.__getitem__)
    spread = _spread(rest)
    if gains[best] / spread <= least:
        return None
    worse = _less(sums[-1], sums[best])
    likely, possible = (
        _within_which(gains, called, spread, LIKELY),
        _within_which(gains, called, spread, POSSIBLE),
    )
    return OnsetSlots(
        begin + best,
        begin + likely[0],
        begin + likely[1],
        max(gains) / spread,
        worse.failed / worse.calls,
        worse.expected / worse.calls,
        begin + possible[0],
        begin + possible[1],
        spread=spread,
    )


def _spread(slots: Sequence[Slot]) -> float:
    """Return how many times as much the slots scatter as independent calls would.

    Attempts of one run fail together, and so do runs that arrive together. Neighbours are
    compared, so that a step, which lies between two of many, counts little.
    """
    squares, count = 0.0, 0
    called = [slot for slot in slots if slot.calls]
    for one, other in pairwise(called):
        share = (one.failed + other.failed) / (one.calls + other.calls)
        if share in (0, 1):
            continue
        difference = one.failed / one.calls - other.failed / other.calls
        variance = share * (1 - share) * (1 / one.calls + 1 / other.calls)
        # Of two small numbers the pooled share is known too well.
        squares += difference**2 / variance * (1 - 1 / (one.calls + other.calls))
        count += 1
    return min(max(squares / count, 1.0), MOST_SPREAD) if count >= FEWEST_PAIRS else 1.0


def _within_which(
    gains: Sequence[float], called: Sequence[int], spread: float, share: float
) -> tuple[int, int]:
    """Return the first and last slot of the interval that holds the onset with a probability.

    All moments are as likely before anything was counted; silence tells nothing, so that
    it may have begun at any time between two calls.
    """
    best = max(gains[at] for at in called)
    weights: list[float] = []
    first = 0
    for at in called:
        silent = at + 1 - first if weights else 1
        weights += [0.0] * (at + 1 - first - silent)
        weights += [exp((gains[at] - best) / spread)] * silent
        first = at + 1
    total = sum(weights)
    sums = list(accumulate(weights))
    likeliest = max(called, key=gains.__getitem__)
    low = bisect_right(sums, total * (1 - share) / 2)
    high = bisect_left(sums, total * (1 + share) / 2)
    return min(low, likeliest), min(max(high, likeliest), len(weights) - 1)


def alarm_of(slots: int, looks: int = 1) -> float:
    """Return the gain that exceeds chance, given at how many places one looks."""
    return log(max(slots, 1)) + log(max(looks, 1)) / 2 + SURE


def is_much(onset: OnsetSlots, slots: Sequence[Slot]) -> bool:
    """Whether enough fails beyond the usual for anybody to speak of it."""
    worse = slots[onset.at : onset.over_at]
    return sum(slot.failed - slot.expected for slot in worse) >= LEAST_MORE


class RisingShare(NamedTuple):
    """The share of calls that fail, in the first third of a trouble and in its latest."""

    first: float
    latest: float


def find_rise(slots: Sequence[Slot], spread: float = 1.0) -> RisingShare | None:
    """Return how much a trouble got worse after it had begun; None: it stays at one level.

    The test for a trend in shares (Cochran and Armitage), its variance widened by how much
    slots scatter.
    """
    calls, failed, _ = map(sum, zip(*slots, strict=True)) if slots else (0, 0, 0.0)
    if not 0 < failed < calls:
        return None
    share = failed / calls
    middle = sum(at * slot.calls for at, slot in enumerate(slots)) / calls
    tilt = sum((at - middle) * slot.failed for at, slot in enumerate(slots))
    width = sum((at - middle) ** 2 * slot.calls for at, slot in enumerate(slots))
    if tilt < SURE_TREND * sqrt(share * (1 - share) * width * spread):
        return None
    first, latest = _share_within(slots, 0, calls / 3), _share_within(slots, 2 * calls / 3, calls)
    return RisingShare(first, latest) if latest >= RISEN * first else None


def _share_within(slots: Sequence[Slot], begin: float, end: float) -> float:
    """Return the share that fails of the calls between two ranks, whole slots."""
    before = accumulate((slot.calls for slot in slots), initial=0)
    kept = [slot for rank, slot in zip(before, slots, strict=False) if begin <= rank < end]
    calls = sum(slot.calls for slot in kept)
    return sum(slot.failed for slot in kept) / calls if calls else 0.0


def may_be_marked(latest_first: Iterable[tuple[int, int, float]]) -> bool:
    """Whether from any slot on so much fails that it would be told, were it over by now or not.

    It is what `is_marked` and `is_much` ask of an onset, asked of all slots at once: most
    series are well, and no more is needed to know it.
    """
    calls = failed = 0
    expected = 0.0
    for slot in latest_first:
        calls += slot[0]
        failed += slot[1]
        expected += slot[2]
        least = max(expected * LEAST_FACTOR, expected + LEAST_POINTS * calls)
        if failed >= LEAST_MORE and failed >= least * ROUNDED:
            return True
    return False


def lasting_onset(
    buckets: Sequence[RunBucket], usual: float | None, known: int
) -> OnsetSlots | None:
    """Find since when one series fails more than usual, and goes on to; else None.

    `usual` is the share of `known` earlier runs that failed, None where there were none.
    """
    share = USUAL_WHEN_NEW if usual is None else max(usual, LOWEST)
    slots = [Slot(one.runs, one.degraded, one.runs * share) for one in buckets]
    if not may_be_marked(reversed(slots)):
        return None
    least = alarm_of(len(slots))
    found = find_onset(slots, known + KNOWN_WHEN_NEW, least)
    if found is None or found.over_at is not None:
        return None
    return found if found.is_marked and is_much(found, slots) else None


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


def _find_calm(slots: Sequence[Slot], found: OnsetSlots) -> tuple[int, int] | None:
    """Return the stretch within a worsening that is surely as usual again, if there is one.

    What is calm dilutes the rate of what is worse: a stretch that may be calm is left out
    of it, and asked once more.
    """
    calm = _calmest(slots, found.at, found.rate)
    if calm is None:
        return None
    first, last, _ = calm
    worse = [*slots[found.at : first], *slots[last:]]
    calls = sum(slot.calls for slot in worse)
    rate = sum(slot.failed for slot in worse) / calls if calls else found.rate
    calm = _calmest(slots, found.at, max(rate, found.rate))
    if calm is None or calm[2] < OVER * found.spread:
        return None
    first, last, _ = calm
    if any(slot.failed for slot in slots[last:]):
        return first, last
    is_over = sum(slot.calls for slot in slots[first:]) >= LEAST_AFTER
    return (first, len(slots)) if is_over else None


def _calmest(slots: Sequence[Slot], begin: int, rate: float) -> tuple[int, int, float] | None:
    """Return the stretch that is likeliest as usual and not as bad as that, and how much."""
    best: tuple[int, int, float] | None = None
    total, first = 0.0, begin
    bad = _within(rate)
    for at in range(begin, len(slots)):
        slot = slots[at]
        if not slot.calls:
            continue
        usual = _within(slot.expected / slot.calls)
        if usual < bad:
            total += slot.failed * log(usual / bad)
            total += (slot.calls - slot.failed) * log((1 - usual) / (1 - bad))
        if total <= 0:
            total, first = 0.0, at + 1
        elif best is None or total > best[2]:
            best = first, at + 1, total
    return best


def _own(slot: Slot) -> float:
    """The log likelihood a call, at the rate that was seen."""
    share = _within(slot.failed / slot.calls)
    return share * log(share) + (1 - share) * log(1 - share)


def _distance(share: float, other: float) -> float:
    """How much likelier a share makes itself than another one does (log, a call)."""
    return share * log(share / other) + (1 - share) * log((1 - share) / (1 - other))


def _within(share: float) -> float:
    return min(max(share, LOWEST), HIGHEST)

"""What is normal for a series: how often it fails, and how its failures keep company."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import sqrt
from typing import NamedTuple

from diagnostics.analysis.detectors.call_history import NOTHING, Block, Split, append_to
from diagnostics.analysis.detectors.results import WindowCounts
from diagnostics.analysis.statistics import wilson_interval

HISTORY_SECONDS = 14 * 86_400
LEAST_CALLS = 200
FEW_CALLS, FEW_SECONDS = 50, 5 * 86_400
"""Calls, and days of them, from which a rare series that is worse than 5 % is believed to be."""
LOWEST_EXPECTED = 0.01
HIGHEST_EXPECTED = 0.80
Z_80 = 0.841621
"""One-sided: the rate is below its upper bound in 80 % of all cases."""
HOURS = 24
HOUR_CALLS = 150
"""Calls at one time of day, with those lent, before it has an expectation of its own."""
LENT_CALLS = 100.0
"""Calls at the usual rate that every time of day begins with."""
LATELY_SECONDS = 2 * 86_400
LENT_FAILURES = 20.0
"""Failures at the usual rate that the last two days begin with."""
MOST_DRIFT = 2.0
WANDERING = 1.3
SURELY = 2.0
LEAST_HOURS = 24
LENT_BURSTS = 5
FIRST_CALLS, FIRST_FAILED = 60, 3
"""Counted with what was seen, lest few calls without a failure promise that none fails."""
COMPANIONS = (4, 0.28), (4, 0.12)
"""Calls that a series begins with right after, and soon after, a failure; their share failed."""


class Expectation(NamedTuple):
    """The shares that fail of calls after good ones, right after and soon after a failure.

    `burst`: how many failures come together, 1 where they keep no company.
    """

    fresh: float = 0.05
    next: float = 0.35
    soon: float = 0.18
    burst: float = 1.0

    @property
    def kinds(self) -> tuple[float, float, float]:
        """The shares alone."""
        return self[:3]

    @property
    def share(self) -> float:
        """The share of all calls that fails."""
        return min(self.fresh * self.burst, HIGHEST_EXPECTED)


@dataclass(slots=True)
class HourSpread:
    """Sums that tell how far hours are apart: over those with calls, of n * n and k * k / n."""

    hours: int = 0
    calls: int = 0
    failed: float = 0.0

    def add(self, hour: WindowCounts, sign: int) -> None:
        """Add an hour, or take it away."""
        n, k = hour
        if n:
            self.hours += sign
            self.calls += sign * n * n
            self.failed += sign * k * k / n


@dataclass(slots=True)
class History:
    """The healthy blocks of the last 14 days, and what they let one expect."""

    _blocks: deque[Block] = field(default_factory=deque)
    _all: Split = NOTHING
    _calls: int = 0
    _by_hour: list[WindowCounts] = field(default_factory=lambda: [WindowCounts()] * HOURS)
    _spread: HourSpread = field(default_factory=HourSpread)

    @property
    def calls(self) -> int:
        """How many calls are remembered."""
        return self._calls

    @property
    def seconds(self) -> float:
        """How long the memory reaches back."""
        return self._blocks[-1].at - self._blocks[0].at if self._blocks else 0.0

    def add(self, block: Block) -> None:
        """Remember a block, one an hour, and forget those older than 14 days before it."""
        before = self._blocks[-1].split.fresh if self._blocks else WindowCounts()
        if append_to(self._blocks, block):
            self._spread.add(before, -1)
        self._spread.add(self._blocks[-1].split.fresh, 1)
        self._count(block, 1)
        while self._blocks[0].at < block.at - HISTORY_SECONDS:
            gone = self._blocks.popleft()
            self._spread.add(gone.split.fresh, -1)
            self._count(gone, -1)

    @property
    def blocks(self) -> Sequence[Block]:
        """What is remembered, one block an hour, oldest first."""
        return self._blocks

    def expect(self, at: float) -> Expectation:
        """Say what to expect at a time, in seconds since the epoch (UTC).

        1. The upper 80 % bound of the rate of 14 days; while there are fewer than 200 calls,
           5 %, or more after 50 calls in five days.
        2. Where hours surely differ from each other, by so much more.
        3. A time of day that is usually worse (with its neighbours) is allowed to be.
        4. More where the last two days were worse than the fourteen.
        5. Right after and soon after a failure, another one is as likely as it usually is;
           where failures come in bursts, fewer than 1 % of other calls are believed to fail.
        """
        if self.calls < LEAST_CALLS:
            return self._expect_of_few()
        calls, failed = self._all.fresh
        usual = _bound(failed + FIRST_FAILED, calls + FIRST_CALLS)
        usual = max(usual + self._wandering(), self._usual_at(at))
        burst = self._burst()
        fresh = _within(usual * self._drift(at), LOWEST_EXPECTED / burst)
        following, soon = (
            max(fresh, _within(_bound(kind.failed + calls * share, kind.calls + calls)))
            for kind, (calls, share) in zip(self._all[1:], COMPANIONS, strict=True)
        )
        return Expectation(fresh, following, soon, burst)

    def _burst(self) -> float:
        """Say how many failures one that comes after good calls stands for."""
        fresh = self._all.fresh
        failed = sum(kind.failed for kind in self._all)
        began = (fresh.failed + LENT_BURSTS) / max(fresh.calls, 1)
        return max(1.0, (failed + LENT_BURSTS) / self.calls / began)

    def _expect_of_few(self) -> Expectation:
        first = Expectation()
        if self.calls < FEW_CALLS or self.seconds < FEW_SECONDS:
            return first
        fresh = max(first.fresh, _within(_bound(self._all.fresh.failed, self._all.fresh.calls)))
        return Expectation(fresh, max(first.next, fresh), max(first.soon, fresh))

    def _count(self, block: Block, sign: int) -> None:
        self._all = self._all.plus(block.split, sign)
        self._calls += sign * block.split.calls
        hour, fresh = _hour_of(block.at), block.split.fresh
        self._by_hour[hour] = self._by_hour[hour].plus(fresh, sign)

    def _usual_at(self, at: float) -> float:
        hour = _hour_of(at)
        near = [self._by_hour[(hour + shift) % HOURS] for shift in (-1, 0, 1)]
        calls = sum(one.calls for one in near) + LENT_CALLS
        failed = sum(one.failed for one in near) + LENT_CALLS * self._all.fresh.share
        return _bound(failed, calls) if calls >= HOUR_CALLS else 0.0

    def _drift(self, at: float) -> float:
        """Say how many times as bad the last two days were as all days: 1 to 2."""
        since, fresh = at - LATELY_SECONDS, self._all.fresh
        lately = _total(takewhile(lambda one: one.at > since, reversed(self._blocks)))
        share = (fresh.failed + 1) / max(fresh.calls, 1)
        surely = (lately.failed + LENT_FAILURES) / (lately.calls + LENT_FAILURES / share)
        return min(max(surely / share, 1.0), MOST_DRIFT)

    def _wandering(self) -> float:
        """Say how far hours are apart beyond what chance makes of them (a share).

        The moment estimate of DerSimonian and Laird (1986), above its own noise.
        """
        hours, (calls, failed) = self._spread.hours, self._all.fresh
        if hours <= LEAST_HOURS:
            return 0.0
        share = failed / calls
        apart = self._spread.failed - 2 * share * failed + share * share * calls
        by_chance = (hours - 1) * share * (1 - share)
        beyond = apart - by_chance * (1 + SURELY * sqrt(2 / hours))
        if beyond <= 0:
            return 0.0
        return WANDERING * sqrt(beyond / (calls - self._spread.calls / calls))


def _total(blocks: Iterable[Block]) -> WindowCounts:
    """Sum the calls after good ones."""
    calls = failed = 0
    for _, split in blocks:
        calls += split.fresh.calls
        failed += split.fresh.failed
    return WindowCounts(calls, failed)


def _bound(failed: float, calls: float) -> float:
    return wilson_interval(failed, calls, Z_80)[1]


def _within(share: float, lowest: float = LOWEST_EXPECTED) -> float:
    return min(max(share, lowest), HIGHEST_EXPECTED)


def _hour_of(at: float) -> int:
    return int(at // 3600) % HOURS

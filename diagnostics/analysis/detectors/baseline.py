"""What is normal for a series: how often it fails, and how its failures keep company."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import NamedTuple

from diagnostics.analysis.detectors.call_history import NOTHING, Block, KindCounts, Split, append_to
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
SURELY = 2.5
"""Standard errors of chance that a spread must be beyond."""
LEAST_HOURS = 12
LENT_BURSTS = 5
FIRST_WEIGHT = 200.0
"""Calls that a rate counts for while no time of day was seen twice."""
KNOWN = 1e6
"""Calls that a rate counts for that is taken for certain."""
FIRST_CALLS, FIRST_FAILED = 60, 3
"""Counted with what was seen, lest few calls without a failure promise that none fails."""
COMPANIONS = (8, 0.28), (8, 0.12)
"""Calls that a series begins with right after, and soon after, a failure; their share failed."""


class Expectation(NamedTuple):
    """The shares that fail of calls after good ones, right after and soon after a failure.

    `burst`: how many failures come together, 1 where they keep no company. `weight`: how many
    calls the share of fresh ones is known by, which is what a level that wanders counts for.
    `rarity`: the share of fresh ones that was seen over the one expected; below 1 where hardly
    any failed, since fewer than 1 % are never expected.
    """

    fresh: float = 0.05
    next: float = 0.35
    soon: float = 0.18
    burst: float = 1.0
    weight: float = KNOWN
    rarity: float = 1.0

    @property
    def kinds(self) -> tuple[float, float, float]:
        """The shares alone."""
        return self[:3]

    @property
    def share(self) -> float:
        """The share of all calls that fails."""
        return min(self.fresh * self.burst, HIGHEST_EXPECTED)


@dataclass(slots=True)
class History:
    """The healthy blocks of the last 14 days, and what they let one expect."""

    _blocks: deque[Block] = field(default_factory=deque)
    _all: Split = NOTHING
    _calls: float = 0
    _by_hour: list[KindCounts] = field(default_factory=lambda: [KindCounts()] * HOURS)

    @property
    def calls(self) -> float:
        """How many calls are remembered."""
        return self._calls

    @property
    def seconds(self) -> float:
        """How long the memory reaches back."""
        return self._blocks[-1].at - self._blocks[0].at if self._blocks else 0.0

    def add(self, block: Block) -> None:
        """Remember a block, one an hour, and forget those older than 14 days before it."""
        append_to(self._blocks, block)
        self._count(block, 1)
        while self._blocks[0].at < block.at - HISTORY_SECONDS:
            gone = self._blocks.popleft()
            self._count(gone, -1)

    @property
    def blocks(self) -> Sequence[Block]:
        """What is remembered, one block an hour, oldest first."""
        return self._blocks

    def expect(self, at: float) -> Expectation:
        """Say what to expect at a time, in seconds since the epoch (UTC)."""
        if self.calls < LEAST_CALLS:
            return self._expect_of_few()
        calls, failed = self._all.fresh
        usual = (failed + FIRST_FAILED) / (calls + FIRST_CALLS)
        levels = self._by_time_of_day(usual)
        wandering = self._wandering(levels)
        burst = self._burst()
        level = levels[_hour_of(at)]
        fresh = _within(level, LOWEST_EXPECTED / burst)
        days = self.seconds / 86_400
        doubt = 1 / (calls + FIRST_CALLS) + wandering / (usual * (1 - usual))
        doubt += 1 / (FIRST_WEIGHT * (1 + days / 3) ** 3)
        following, soon = (
            max(fresh, _within((kind.failed + calls * share) / (kind.calls + calls)))
            for kind, (calls, share) in zip(self._all[1:], COMPANIONS, strict=True)
        )
        return Expectation(fresh, following, soon, burst, 1 / doubt, min(level / fresh, 1.0))

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

    def _by_time_of_day(self, usual: float) -> list[float]:
        """Return the share that fails at each hour of the day.

        Hours that do not differ beyond chance have the usual one; others are drawn to it by as
        many calls as their spread says (empirical Bayes).
        """
        spread = _spread((hour, usual) for hour in self._by_hour)
        if spread <= 0:
            return [usual] * HOURS
        lent = usual * (1 - usual) / spread
        levels = []
        for hour in range(HOURS):
            near = [self._by_hour[(hour + shift) % HOURS] for shift in (-1, 0, 1)]
            calls = sum(one.calls for one in near) + lent
            levels.append((sum(one.failed for one in near) + lent * usual) / calls)
        return levels

    def _wandering(self, levels: Sequence[float]) -> float:
        """Return the variance of the share between hours beyond chance and their time of day."""
        blocks = self._blocks
        return _spread((one.split.fresh, levels[_hour_of(one.at)]) for one in blocks)


def _spread(hours: Iterable[tuple[KindCounts, float]]) -> float:
    """Return the variance of shares around these expected ones, beyond what chance makes.

    The moment estimate of DerSimonian and Laird (1986), above its own noise. That is of
    binomial counts: few failures an hour vary far more than a normal variable does.
    """
    count, calls, squares = 0, 0.0, 0.0
    apart = by_chance = noise = 0.0
    for (n, k), share in hours:
        if n:
            count += 1
            calls += n
            squares += n * n
            apart += (k - n * share) ** 2 / n
            variance = share * (1 - share)
            by_chance += variance
            noise += variance * (2 * variance + (1 - 6 * variance) / n)
    if count < LEAST_HOURS:
        return 0.0
    beyond = apart - by_chance - SURELY * sqrt(max(noise, 0.0))
    return max(beyond / (calls - squares / calls), 0.0)


def _bound(failed: float, calls: float) -> float:
    return wilson_interval(failed, calls, Z_80)[1]


def _within(share: float, lowest: float = LOWEST_EXPECTED) -> float:
    return min(max(share, lowest), HIGHEST_EXPECTED)


def _hour_of(at: float) -> int:
    return int(at // 3600) % HOURS

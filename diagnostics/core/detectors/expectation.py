"""What is normal for a series: how often it fails, and how its failures keep company."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from diagnostics.core.detectors.calls import NOTHING, Kind, Split
from diagnostics.core.statistics import wilson_interval

HISTORY_SECONDS = 14 * 86_400
LEAST_CALLS = 200
LOWEST_EXPECTED = 0.01
HIGHEST_EXPECTED = 0.80
Z_80 = 0.841621
"""One-sided: the rate is below its upper bound in 80 % of all cases."""
HOURS = 24
HOUR_CALLS = 150
"""Calls at one time of day before that time has an expectation of its own."""
COMPANIONS = (8, 0.35), (8, 0.18)
"""Calls that a series begins with right after, and soon after, a failure; their share failed."""


class Expectation(NamedTuple):
    """The shares that fail of calls after good ones, right after and soon after a failure."""

    fresh: float = 0.05
    next: float = 0.35
    soon: float = 0.18


class Block(NamedTuple):
    """Some calls in a row, and when the last of them was."""

    at: float
    split: Split


@dataclass(slots=True)
class History:
    """The healthy blocks of the last 14 days, and what they let one expect."""

    _blocks: deque[Block] = field(default_factory=deque)
    _all: Split = NOTHING
    _by_hour: list[Kind] = field(default_factory=lambda: [Kind()] * HOURS)

    @property
    def calls(self) -> int:
        """How many calls are remembered."""
        return self._all.calls

    @property
    def seconds(self) -> float:
        """How long the memory reaches back."""
        return self._blocks[-1].at - self._blocks[0].at if self._blocks else 0.0

    def add(self, block: Block) -> None:
        """Remember a block, one an hour, and forget those older than 14 days before it."""
        last = self._blocks[-1] if self._blocks else None
        if last is not None and block.at // 3600 == last.at // 3600:
            self._blocks[-1] = Block(block.at, last.split.plus(block.split))
        else:
            self._blocks.append(block)
        self._count(block, 1)
        while self._blocks[0].at < block.at - HISTORY_SECONDS:
            self._count(self._blocks.popleft(), -1)

    @property
    def blocks(self) -> Sequence[Block]:
        """What is remembered, one block an hour, oldest first."""
        return self._blocks

    def expect(self, at: float) -> Expectation:
        """Say what to expect at a time, in seconds since the epoch (UTC).

        1. The upper 80 % bound of the rate of 14 days; 5 % while there are fewer than
           200 calls.
        2. A time of day that is usually worse (with its neighbours, 150 calls at least)
           is allowed to be.
        3. Right after and soon after a failure, another one is as likely as it usually is.
        """
        if self.calls < LEAST_CALLS:
            return Expectation()
        fresh = _within(max(_upper(self._all.fresh), self._usual_at(at)))
        companions = (
            _within((kind.failed + calls * share) / (kind.calls + calls))
            for kind, (calls, share) in zip(self._all[1:], COMPANIONS, strict=True)
        )
        return Expectation(fresh, *(max(share, fresh) for share in companions))

    def _count(self, block: Block, sign: int) -> None:
        self._all = self._all.plus(block.split, sign)
        hour, fresh = _hour_of(block.at), block.split.fresh
        known = self._by_hour[hour]
        self._by_hour[hour] = Kind(
            known.calls + sign * fresh.calls, known.failed + sign * fresh.failed
        )

    def _usual_at(self, at: float) -> float:
        hour = _hour_of(at)
        near = [self._by_hour[(hour + shift) % HOURS] for shift in (-1, 0, 1)]
        known = Kind(sum(one.calls for one in near), sum(one.failed for one in near))
        return _upper(known) if known.calls >= HOUR_CALLS else 0.0


def _upper(kind: Kind) -> float:
    return wilson_interval(kind.failed, kind.calls, Z_80)[1]


def _within(share: float) -> float:
    return min(max(share, LOWEST_EXPECTED), HIGHEST_EXPECTED)


def _hour_of(at: float) -> int:
    return int(at // 3600) % HOURS

"""Traffic of series by minutes, healthy and degraded, in the shapes that fool alert rules."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, default_rng

DAY = 1_440
WEEK = 7 * DAY
FIRST_WEEKDAY = 3
"""Minutes count from a Thursday, as those of the epoch do."""
SHAPES = ("flat", "rhythm", "rhythm, retries", "bursts", "sticky", "restless")
Minute = tuple[int, int, int]
"""A minute with calls: its number, its calls and how many of them failed."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One series: so many calls an hour, healthy but for some minutes at `bad_share`."""

    shape: str
    calls_an_hour: float
    share: float
    minutes: int
    seed: Sequence[int]
    bad_share: float = 0.0
    bad: tuple[int, int] = (0, 0)

    def calls(self) -> Iterator[Minute]:
        """Yield the minutes that have calls."""
        draw = default_rng([*self.seed, SHAPES.index(self.shape)])
        at = np.arange(self.minutes)
        day = np.sin(2 * np.pi * at / DAY)
        has_rhythm = self.shape.startswith("rhythm")
        is_weekend = (at // DAY + FIRST_WEEKDAY) % 7 >= 5
        busy = 1 + 0.9 * np.sin(2 * np.pi * at / DAY + 1) if has_rhythm else np.ones(self.minutes)
        busy = busy * np.where(has_rhythm & is_weekend, 0.2, 1.0)
        share = np.full(self.minutes, self.share)
        if has_rhythm:
            share = share * (1 + 0.5 * day) * np.where(is_weekend, 1.4, 1.0)
        if self.shape == "restless":
            by_hour = draw.gamma(1 / 0.36, 0.36, self.minutes // 60 + 1)
            share = np.minimum(0.95, share * np.repeat(by_hour, 60)[: self.minutes])
        share[slice(*self.bad)] = self.bad_share
        calls = draw.poisson(self.calls_an_hour / 60 * busy)
        failed = _fail(self.shape, calls, share, draw)
        told = np.nonzero(calls)[0]
        yield from zip(told.tolist(), calls[told].tolist(), failed[told].tolist(), strict=True)


Counts = np.ndarray[tuple[int], np.dtype[np.int64]]
Shares = np.ndarray[tuple[int], np.dtype[np.float64]]


def _fail(shape: str, calls: Counts, share: Shares, draw: Generator) -> Counts:
    """Draw how many calls of each minute fail."""
    if shape in ("flat", "rhythm", "restless"):
        return draw.binomial(calls, share)
    one_by_one = _bursts if shape == "bursts" else _sticky
    failed = one_by_one(np.repeat(share, calls).tolist(), draw)
    until = np.cumsum(calls)
    total = np.concatenate([[0], np.cumsum(failed)])
    found: Counts = total[until] - total[until - calls]
    return found


def _sticky(shares: Sequence[float], draw: Generator) -> list[int]:
    """After a failure the next call fails in half of all cases: it is a retry."""
    found, failed = list[int](), 0
    for share, chance in zip(shares, draw.random(len(shares)).tolist(), strict=True):
        stays = max(0.5, share)
        begins = min(1.0, share * (1 - stays) / (1 - share))
        failed = int(chance < (stays if failed else begins))
        found.append(failed)
    return found


def _bursts(shares: Sequence[float], draw: Generator) -> list[int]:
    """Half of the failures come in bursts of 3 to 7 calls."""
    found, left = list[int](), 0
    chances, begins = draw.random((2, len(shares))).tolist()
    lengths = draw.integers(3, 8, len(shares)).tolist()
    for share, chance, begun, length in zip(shares, chances, begins, lengths, strict=True):
        if left:
            left -= 1
            found.append(int(chance < 0.8))
            continue
        left = length if begun < share / 8 else 0
        found.append(int(chance < share / 2))
    return found

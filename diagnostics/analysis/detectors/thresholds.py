"""The detectors `threshold`, `count` and `absent`: a bound that is crossed."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from diagnostics.analysis.statistics import wilson_interval


class WindowCounts(NamedTuple):
    calls: int = 0
    failed: int = 0

    @property
    def share(self) -> float:
        return self.failed / self.calls if self.calls else 0.0


class Judgement(NamedTuple):
    """Whether to fire and whether an earlier fire is over; between both nothing changes.

    `counts` and `bound` are what was compared: the bound is a share (0 to 1) for rates and
    a number for counts.
    """

    fires: bool
    clears: bool
    counts: WindowCounts
    bound: float


def judge_absence(silent_seconds: float, longest_seconds: float, counts: WindowCounts) -> Judgement:
    """Fire when the silence is longer than allowed; clear with the first sign of life."""
    fires = silent_seconds > longest_seconds
    return Judgement(fires, not fires, counts, longest_seconds)


Window = Callable[[int], WindowCounts]
"""The counts of the last so many seconds."""
LEAST_CALLS = 20
LEAST_FAILED = 5
CLEARED_SHARE = 0.8
DEFAULT_LIMIT = 0.05
DEFAULT_FAILED = 3
COUNT_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is compared; each detector looks at its own.

    `limit` is a share (0 to 1) or milliseconds, `count` a number (money in millionths),
    `seconds` a window or a silence.
    """

    limit: float = DEFAULT_LIMIT
    count: float = DEFAULT_FAILED
    seconds: int = COUNT_SECONDS


def judge_count(least: int, counts: WindowCounts) -> Judgement:
    """Fire at `least` failures; clear below 0.8 of that."""
    clears = counts.failed < ceil(CLEARED_SHARE * least)
    return Judgement(counts.failed >= least, clears, counts, float(least))


Z_99 = 2.326
ENOUGH_CALLS = 40
MINUTE = 60
LONG_WINDOWS = tuple(minutes * MINUTE for minutes in (15, 30, 60, 120, 240, 360))
SHORT_SECONDS = 5 * MINUTE
SHORT_CALLS = 10


def long_window(window: Window) -> WindowCounts:
    """Return the counts of the shortest long window that holds enough calls."""
    counts = WindowCounts(0, 0)
    for seconds in LONG_WINDOWS:
        counts = window(seconds)
        if counts.calls >= ENOUGH_CALLS:
            break
    return counts


def judge_threshold(limit: float, long: WindowCounts, short: WindowCounts) -> Judgement:
    """Judge a rate against a limit (a share between 0 and 1)."""
    bound = wilson_interval(long.failed, long.calls, Z_99)[0]
    enough = long.calls >= LEAST_CALLS and long.failed >= LEAST_FAILED
    confirmed = short.failed >= 1 and short.share > limit
    low = long.calls > 0 and long.share < CLEARED_SHARE * limit
    return Judgement(enough and bound > limit and confirmed, low, long, bound)

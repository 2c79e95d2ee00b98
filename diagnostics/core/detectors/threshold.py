"""The `threshold` detector: a rate is above a limit, beyond what chance explains.

1. The long window grows from 15 minutes to 6 hours, until it holds 40 calls; with fewer
   than 20 it never fires. A window of 20 would fire falsely twice as often, 10 minutes sooner.
2. It fires when at least 5 calls failed, the lower Wilson bound (z = 2.326, one-sided 99 %)
   is above the limit, and the last moments (5 minutes, 10 calls at least) confirm it.
3. It clears when the rate of the long window is below 0.8 of the limit.
"""

from collections.abc import Callable

from diagnostics.core.detectors.judgement import Counts, Judgement
from diagnostics.core.statistics import wilson_interval

Z_99 = 2.326
LEAST_CALLS = 20
ENOUGH_CALLS = 40
LEAST_FAILED = 5
CLEARED_SHARE = 0.8
MINUTE = 60
LONG_WINDOWS = tuple(minutes * MINUTE for minutes in (15, 30, 60, 120, 240, 360))
SHORT_SECONDS = 5 * MINUTE
SHORT_CALLS = 10

Window = Callable[[int], Counts]
"""The counts of the last so many seconds."""


def long_window(window: Window) -> Counts:
    """Give the counts of the shortest long window that holds enough calls."""
    counts = Counts(0, 0)
    for seconds in LONG_WINDOWS:
        counts = window(seconds)
        if counts.calls >= ENOUGH_CALLS:
            break
    return counts


def lower_bound(counts: Counts) -> float:
    """Give the lower bound of the true rate."""
    return wilson_interval(counts.failed, counts.calls, Z_99)[0]


def judge_threshold(limit: float, long: Counts, short: Counts) -> Judgement:
    """Judge a rate against a limit (a share between 0 and 1)."""
    bound = lower_bound(long)
    enough = long.calls >= LEAST_CALLS and long.failed >= LEAST_FAILED
    confirmed = short.failed >= 1 and short.share > limit
    low = long.calls > 0 and long.share < CLEARED_SHARE * limit
    return Judgement(enough and bound > limit and confirmed, low, long, bound)

"""The detectors `threshold`, `count`, `burn` and `absent`: a bound that is crossed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil

from diagnostics.analysis.detectors.results import Judgement, WindowCounts
from diagnostics.analysis.statistics import wilson_interval


def judge_absence(silent_seconds: float, longest_seconds: float, counts: WindowCounts) -> Judgement:
    """Fire when the silence is longer than allowed; clear with the first sign of life."""
    fires = silent_seconds > longest_seconds
    return Judgement(fires, not fires, counts, longest_seconds)


Window = Callable[[int], WindowCounts]
"""The counts of the last so many seconds."""
LEAST_CALLS = 20
LEAST_FAILED = 5
HIGHEST_SHARE = 0.5
CLEARED_SHARE = 0.8
HOUR = 3600


class BudgetError(ValueError):
    """a budget is a share above 0 and below 0.5"""

    def __str__(self) -> str:
        """Say it."""
        return str(self.__doc__)


@dataclass(frozen=True, slots=True)
class Pace:
    """A rate of use that counts as too fast: `factor` times the budget in both windows."""

    long_seconds: int
    short_seconds: int
    factor: float


PACES = (Pace(HOUR, 300, 14.4), Pace(6 * HOUR, 1800, 6.0), Pace(72 * HOUR, 6 * HOUR, 1.0))
DEFAULT_BUDGET = 0.05
DEFAULT_LIMIT = 0.05
DEFAULT_FAILED = 3
COUNT_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is compared; each detector looks at its own.

    `limit` is a share (0 to 1) or milliseconds, `count` a number (money in millionths),
    `seconds` a window or a silence, `budget` a share and `factor` its fast pace.
    """

    limit: float = DEFAULT_LIMIT
    count: float = DEFAULT_FAILED
    seconds: int = COUNT_SECONDS
    budget: float = DEFAULT_BUDGET
    factor: float = PACES[0].factor


def capped_factor(factor: float, budget: float) -> float:
    """Cap a factor at 0.5 / budget: a share of 100 % and more could never be reached."""
    return min(factor, HIGHEST_SHARE / budget)


def check_budget(budget: float) -> None:
    """Raise BudgetError for a budget that no rate could use up too fast."""
    if not 0 < budget < HIGHEST_SHARE:
        raise BudgetError


def judge_burn(budget: float, pace: Pace, long: WindowCounts, short: WindowCounts) -> Judgement:
    """Fire when both windows use the budget faster than the pace; clear below 0.8 of it."""
    bound = budget * capped_factor(pace.factor, budget)
    enough = long.calls >= LEAST_CALLS and long.failed >= LEAST_FAILED
    fires = enough and long.share > bound and short.failed > 0 and short.share > bound
    return Judgement(fires, short.share < CLEARED_SHARE * bound, long, bound)


def judge_budget(budget: float, window: Window, factor: float = PACES[0].factor) -> Judgement:
    """Judge every pace, the fast one by a factor of its own: one that fires is enough."""
    judged = [
        judge_burn(budget, pace, window(pace.long_seconds), window(pace.short_seconds))
        for pace in (replace(PACES[0], factor=factor), *PACES[1:])
    ]
    firing = next((one for one in judged if one.fires), None)
    return firing or judged[0]._replace(clears=all(one.clears for one in judged))


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


def lower_bound(counts: WindowCounts) -> float:
    """Return the lower bound of the true rate."""
    return wilson_interval(counts.failed, counts.calls, Z_99)[0]


def judge_threshold(limit: float, long: WindowCounts, short: WindowCounts) -> Judgement:
    """Judge a rate against a limit (a share between 0 and 1)."""
    bound = lower_bound(long)
    enough = long.calls >= LEAST_CALLS and long.failed >= LEAST_FAILED
    confirmed = short.failed >= 1 and short.share > limit
    low = long.calls > 0 and long.share < CLEARED_SHARE * limit
    return Judgement(enough and bound > limit and confirmed, low, long, bound)

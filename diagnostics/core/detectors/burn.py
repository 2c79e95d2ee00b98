"""The `burn` detector: an error budget is used up too fast, in a long and a short window."""

from dataclasses import dataclass

from diagnostics.core.detectors.judgement import Counts, Judgement

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


PACES = (
    Pace(HOUR, 300, 14.4),
    Pace(6 * HOUR, 1800, 6.0),
    Pace(72 * HOUR, 6 * HOUR, 1.0),
)
DEFAULT_BUDGET = 0.05


def capped_factor(factor: float, budget: float) -> float:
    """Cap a factor at 0.5 / budget: a share of 100 % and more could never be reached."""
    return min(factor, HIGHEST_SHARE / budget)


def check_budget(budget: float) -> None:
    """Raise BudgetError for a budget that no rate could use up too fast."""
    if not 0 < budget < HIGHEST_SHARE:
        raise BudgetError


def judge_burn(budget: float, pace: Pace, long: Counts, short: Counts) -> Judgement:
    """Fire when both windows use the budget faster than the pace; clear below 0.8 of it."""
    bound = budget * capped_factor(pace.factor, budget)
    enough = long.calls >= LEAST_CALLS and long.failed >= LEAST_FAILED
    fires = enough and long.share > bound and short.failed > 0 and short.share > bound
    return Judgement(fires, short.share < CLEARED_SHARE * bound, long, bound)

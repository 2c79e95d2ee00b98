"""Intervals of rates and of their differences, and how the chance of success grows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, hypot, log, sqrt
from statistics import NormalDist

Z_95 = 1.959964
LEAST_TRIALS = 20
"""Below this, no rate is compared: there is not enough data."""
LEAST_FAILURES = 5
"""Below this, more than elsewhere or before is told as chance."""


def wilson_interval(successes: float, trials: float, z: float = Z_95) -> tuple[float, float]:
    """Return the Wilson score interval (low, high) of a share; (0, 1) without a trial.

    Raises ValueError unless 0 <= successes <= trials.
    """
    if not 0 <= successes <= trials:
        raise ValueError("a share needs 0 <= successes <= trials")
    if trials == 0:
        return 0.0, 1.0
    share = successes / trials
    weight = z * z / trials
    centre = share + weight / 2
    spread = z * sqrt((share * (1 - share) + weight / 4) / trials)
    low = 0.0 if successes == 0 else (centre - spread) / (1 + weight)
    high = 1.0 if successes == trials else (centre + spread) / (1 + weight)
    return low, high


def newcombe_interval(
    first: int, first_trials: int, second: int, second_trials: int, z: float = Z_95
) -> tuple[float, float]:
    """Return the interval (low, high) of the first share less the second; (-1, 1) unless
    both have a trial.

    Newcombe's hybrid of two Wilson intervals without continuity correction (method 10 of
    Statistics in Medicine 17, 1998, 873-890). Raises ValueError as `wilson_interval`.
    """
    low_1, high_1 = wilson_interval(first, first_trials, z)
    low_2, high_2 = wilson_interval(second, second_trials, z)
    if not first_trials or not second_trials:
        return -1.0, 1.0
    share_1, share_2 = first / first_trials, second / second_trials
    difference = share_1 - share_2
    below = hypot(share_1 - low_1, high_2 - share_2)
    above = hypot(high_1 - share_1, share_2 - low_2)
    return difference - below, difference + above


def z_of(among: int) -> float:
    """Return the z of intervals of which all hold in 95 % of cases (Bonferroni)."""
    return Z_95 if among <= 1 else NormalDist().inv_cdf(1 - 0.025 / among)


def is_enough(*trials: int) -> bool:
    return all(count >= LEAST_TRIALS for count in trials)


@dataclass(frozen=True, slots=True)
class AttemptTally:
    """How often attempt k of a ladder was made, and how often it gave a valid answer."""

    made: int
    good: int


@dataclass(frozen=True, slots=True)
class Chance:
    """A probability with its 95 % interval."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class AttemptStep:
    """Attempt k: the chance that it succeeds, and that one of the first k does.

    `own` is None where no such attempt was made; then `within` is unknown as well.
    """

    number: int
    tally: AttemptTally
    own: Chance | None
    within: Chance | None


def attempts_to_success(tallies: Sequence[AttemptTally]) -> list[AttemptStep]:
    """Turn the counts of attempts 1, 2, ... into the curve of their success.

    The chance within k attempts is the product limit (Kaplan and Meier): ladders that
    were allowed fewer attempts count as far as they went. Its interval is Greenwood's on
    the log-log scale; where nothing or everything succeeded, or nobody gave up early
    (then it is a plain share), Wilson's. Raises ValueError when more succeeded than were
    made.
    """
    steps: list[AttemptStep] = []
    is_known = True
    for number, tally in enumerate(tallies, start=1):
        is_known = is_known and tally.made > 0
        own = chance_of(tally.good, tally.made) if tally.made else None
        within = chance_within(tallies[:number]) if is_known else None
        steps.append(AttemptStep(number, tally, own, within))
    return steps


def chance_of(good: int, attempts: int) -> Chance:
    """Return a share of trials, at least one, with its Wilson interval."""
    return Chance(good / attempts, *wilson_interval(good, attempts))


def chance_within(tallies: Sequence[AttemptTally]) -> Chance:
    """Return the chance that one of these attempts succeeds; each was made at least once."""
    # Every ladder that failed went on: then nothing has to be estimated.
    if all(after.made == before.made - before.good for before, after in pairwise(tallies)):
        return chance_of(sum(tally.good for tally in tallies), tallies[0].made)
    all_fail = 1.0
    variance = 0.0
    for tally in tallies:
        failed = tally.made - tally.good
        if failed == 0:
            return Chance(1.0, wilson_interval(tally.made, tally.made)[0], 1.0)
        all_fail *= failed / tally.made
        variance += tally.good / (tally.made * failed)
    if all_fail == 1.0:
        return chance_of(0, tallies[0].made)
    spread = exp(Z_95 * sqrt(variance) / abs(log(all_fail)))
    return Chance(1 - all_fail, 1 - all_fail ** (1 / spread), 1 - all_fail**spread)

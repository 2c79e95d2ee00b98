"""The `change` detector: cumulative sums that tell that a series became worse, and when.

1. For each of a few rates that the series might have jumped to, a sum gains the log of the
   likelihood ratio with every call, and never falls below zero.
2. How high a healthy sum climbs is learned too. Where it climbs more than chance would have
   it (failures in bursts, restless rates), a climb counts for less.
3. A sum above the alarm fires. When it left zero is the onset: since when.
"""

from dataclasses import dataclass
from math import log
from typing import NamedTuple

from diagnostics.core.detectors.calls import Kind, Split
from diagnostics.core.detectors.expectation import Expectation

LOWEST_ALARM = 4.0
ALARM_BEYOND = 0.9
"""Above log(calls a week): about one false fire a year for one of 48 healthy series."""
SERIES_OF_A_PROJECT = 48
"""One false fire a week is what all series of a project may cost: fewer need less."""
FEWEST_SERIES = 5
LARGE_JUMPS = (0.25, 0.45, 0.80)
HIGHEST_FEARED = 0.97
USUAL_CLIMBS = 12.0
USUAL_EXCESS = 1.5
FORGETTING = 0.995


class Weights(NamedTuple):
    """What one failed and one good call of a kind add to a sum."""

    failed: float
    good: float


@dataclass(slots=True)
class Suspicion:
    """One sum: how much speaks for its rate, since when, and how healthy ones climbed."""

    total: float = 0.0
    since: float = 0.0
    peak: float = 0.0
    climbs: float = USUAL_CLIMBS
    excess: float = USUAL_CLIMBS * USUAL_EXCESS

    @property
    def evidence(self) -> float:
        """The sum, for less where climbs mean less."""
        if self.climbs >= self.excess:
            return self.total
        return self.total * (self.climbs / self.excess)

    def add(self, gain: float, at: float, ceiling: float) -> None:
        """Add what calls that ended at a time say; stays between 0 and `ceiling`."""
        if self.total == 0.0:
            self.since = at
        total = self.total + gain
        self.total = 0.0 if total < 0.0 else min(total, ceiling)
        if self.total > self.peak:
            self.peak = self.total

    def learn_climb(self, one_failure: float, alarm: float) -> None:
        """Remember how far a climb that has ended rose above that of one failure."""
        if self.total > 0.0:
            return
        if self.peak > one_failure:
            self.climbs = self.climbs * FORGETTING + 1
            self.excess = self.excess * FORGETTING + min(self.peak, alarm) - one_failure
        self.peak = 0.0

    def drop(self) -> None:
        """Begin anew, keeping what was learned."""
        self.total = self.peak = 0.0


def feared_rates(expected: float) -> tuple[float, ...]:
    """Give the rates worth an alarm: a clear worsening first, then large jumps.

    The least is max(3 x expected, expected + 10 points).
    """
    least = min(max(3 * expected, expected + 0.10), HIGHEST_FEARED)
    return (least, *(rate for rate in LARGE_JUMPS if rate > 1.25 * least))


def weigh(expectation: Expectation) -> tuple[tuple[Weights, ...], ...]:
    """Give the weights of every sum, for each kind of call.

    After a failure only a rate above the usual one there speaks for anything.
    """
    return tuple(
        tuple(_weights(max(feared, usual), usual) for usual in expectation)
        for feared in feared_rates(expectation.fresh)
    )


def gain_of(split: Split, weights: tuple[Weights, ...]) -> float:
    """Give what these calls add to the sum with these weights."""
    fresh, following, soon = split
    return (
        _gain(fresh, weights[0])
        + _gain(following, weights[1])
        + _gain(soon, weights[2])
    )


def alarm_level(calls_a_week: float, series: int = SERIES_OF_A_PROJECT) -> float:
    """Give the evidence that fires: a project of more series needs more of it."""
    shared = log(max(series, FEWEST_SERIES) / SERIES_OF_A_PROJECT)
    return max(LOWEST_ALARM, log(max(calls_a_week, 1.0)) + ALARM_BEYOND + shared)


def _weights(feared: float, usual: float) -> Weights:
    return Weights(log(feared / usual), log((1 - feared) / (1 - usual)))


def _gain(kind: Kind, weight: Weights) -> float:
    calls, failed = kind
    return failed * weight[0] + (calls - failed) * weight[1] if calls else 0.0

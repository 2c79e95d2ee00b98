"""The `change` detector: cumulative sums that tell that a series became worse, and when.

1. For some rates that the series might have jumped to, a sum gains the log of the
   likelihood ratio with every call, and never falls below zero. One sum fears that all fails.
2. Failures that usually come in bursts count as one: only what is more than a usual burst
   speaks for anything, and lower rates of new bursts are feared.
3. How high a healthy sum climbs is learned too. Where it climbs more than chance would have
   it (restless rates), a climb counts for less.
4. A sum above the alarm fires. When it left zero is the onset: since when.

The constants were chosen by simulating the scenarios of `bench.alert_scenarios` with other
seeds: 12 to 600 calls an hour, failures that are independent, stick together or come in bursts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from typing import NamedTuple

from diagnostics.analysis.detectors.baseline import Expectation
from diagnostics.analysis.detectors.call_history import Split

LOWEST_ALARM = 4.0
ALARM_BY_CALLS = 1.1
"""More than 1: of many calls more are like each other than their number says."""
ALARM_BY_SERIES = 1.52
ALARM_OF_PROJECT = 0.21
"""With these, 48 healthy series with daily and weekly rhythm fire about once a week together."""
SERIES_OF_A_PROJECT = 48
"""One false fire a week is what all series of a project may cost: fewer need less."""
FEWEST_SERIES = 5
WORSE, MUCH_WORSE = 3.0, 0.20
"""What is feared: three times what is expected, and 20 points above it."""
FAR_APART = 1.25
HIGHEST_FEARED = 0.97
RUN_GOES_ON = 0.5
"""The least that is usual after a failure to the sum that fears that all fails: it takes runs."""
SUMS = 4
CLEARLY_WORSE = 0.10
USUAL_CLIMBS = 12.0
USUAL_EXCESS = 1.3
TOLERATED_EXCESS = 1.15
"""Climbs of independent failures rise so far above the first: a failure is a large step."""
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
        tolerated = TOLERATED_EXCESS * self.climbs
        if tolerated >= self.excess:
            return self.total
        return self.total * (tolerated / self.excess)

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


def feared_rates(expected: float, burst: float = 1.0) -> tuple[float, ...]:
    """Return the rates worth an alarm: three times the expected one, and 20 points above it.

    Where failures come together, `burst` at a time, calls fail in 20 points more of all cases
    when so many fewer bursts begin. The lowest first; of those that are close to each other
    only one.
    """
    rates = {WORSE * expected, expected + MUCH_WORSE}
    if burst > FAR_APART:
        rates.add(expected + MUCH_WORSE / burst)
    feared: tuple[float, ...] = ()
    for rate in sorted(rates):
        if not feared or min(rate, HIGHEST_FEARED) > FAR_APART * feared[-1]:
            feared += (min(rate, HIGHEST_FEARED),)
    return feared


def clearly_worse(expected: float) -> float:
    """Return the rate below 0.8 of which trouble is over.

    max(3 x, 10 points above) usual, but no more than 20 points above: an alarm that fires
    for those must not be over while they last.
    """
    least = max(WORSE * expected, expected + CLEARLY_WORSE)
    return min(least, expected + MUCH_WORSE, HIGHEST_FEARED)


def weigh(expectation: Expectation) -> tuple[tuple[Weights, ...], ...]:
    """Return the weights of every sum, for each kind of call.

    After a failure only a rate above the usual one there speaks for anything.
    """
    rates = feared_rates(expectation.fresh, expectation.burst)
    by_rate = (weigh_rate(feared, expectation) for feared in rates)
    return (_weigh_outage(expectation), *by_rate)


def weigh_rate(feared: float, expectation: Expectation) -> tuple[Weights, ...]:
    """Return the weights of the sum that fears one rate, for each kind of call."""
    return tuple(_weights(max(feared, usual), usual) for usual in expectation.kinds)


def gain_of(split: Split, weights: tuple[Weights, ...]) -> float:
    """Return what these calls add to the sum with these weights."""
    gain = 0.0
    for (calls, failed), (if_failed, if_good) in zip(split, weights, strict=True):
        if calls:
            gain += failed * if_failed + (calls - failed) * if_good
    return gain


def alarm_level(calls_a_week: float, series: int = SERIES_OF_A_PROJECT) -> float:
    """Return the evidence that fires: more calls, or a project of more series, need more."""
    shared = log(max(series, FEWEST_SERIES) / SERIES_OF_A_PROJECT)
    by_calls = ALARM_BY_CALLS * log(max(calls_a_week, 1.0))
    return max(LOWEST_ALARM, by_calls + ALARM_OF_PROJECT + ALARM_BY_SERIES * shared)


def relief_of(margins: Iterable[float]) -> float:
    """Return how much less evidence each series needs now.

    One of many series needs more evidence than one alone: somebody is always unlucky. When r
    of them are suspicious at once, chance explains that less, and each needs log(r) less
    evidence (Benjamini and Hochberg, 1995). A margin is the evidence that a series lacks for
    an alarm of its own. The largest r counts for which r series lack at most log(r).
    """
    found = 0.0
    for rank, margin in enumerate(sorted(margins), 1):
        if margin <= log(rank):
            found = log(rank)
    return found


def strongest(suspicions: Iterable[Suspicion]) -> Suspicion | None:
    """Return the suspicion with most evidence, the first of those that have as much.

    None where nothing speaks for any of them.
    """
    found, most = None, 0.0
    for one in suspicions:
        # No evidence is more than its sum.
        if one.total > most and (evidence := one.evidence) > most:
            found, most = one, evidence
    return found


def _weigh_outage(expectation: Expectation) -> tuple[Weights, ...]:
    """Weigh runs of failures: where those are usual, no rate says that all fails now."""
    fresh, following, soon = expectation.kinds
    begins = Weights(0.0, _weights(HIGHEST_FEARED, fresh).good)
    rest = (max(usual, RUN_GOES_ON) for usual in (following, soon))
    return (begins, *(_weights(HIGHEST_FEARED, usual) for usual in rest))


def _weights(feared: float, usual: float) -> Weights:
    return Weights(log(feared / usual), log((1 - feared) / (1 - usual)))

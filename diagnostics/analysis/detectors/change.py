"""The `change` detector: cumulative sums that tell that a series became worse, and when.

1. For some rates that the series might have jumped to, a sum gains the log of the
   likelihood ratio with every call, and never falls below zero. One sum fears that all fails.
2. The usual rate is known from so many calls, and wanders: its likelihood is that of a beta
   distribution with as much weight, so that a rate that may be usual speaks for nothing.
3. Failures that usually come in bursts count as one: only what is more than a usual burst
   speaks for anything, and lower rates of new bursts are feared.
4. How much minutes vary, and how high a healthy sum climbs, is learned too. Where that is
   more than chance would have it, a climb counts for less.
5. A sum above its alarm fires. When it left zero is the onset: since when.

The constants were chosen by simulating the scenarios of `bench.alert_scenarios` with other
seeds: 12 to 600 calls an hour, failures that are independent, stick together or come in bursts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import lgamma, log
from typing import NamedTuple

from diagnostics.analysis.detectors.baseline import Z_80, Expectation
from diagnostics.analysis.detectors.call_history import KindCounts, Split
from diagnostics.analysis.statistics import wilson_interval

LOWEST_ALARM = 3.0
FIRES_A_WEEK = 1.0
"""What all series of a project may cost together."""
SERIES_OF_A_PROJECT = 48
SERIES_COUNT_AS = 0.75
"""So many series need the evidence of fewer: far out it overstates what chance may do."""
WORSE, MUCH_WORSE = 2.6, 0.20
"""What is feared: 2.6 times what is expected, and 20 points above it."""
FAR_APART = 1.25
HIGHEST_FEARED = 0.97
RUN_GOES_ON = 0.5
"""The least that is usual after a failure to the sum that fears that all fails: it takes runs."""
SUMS = 4
SUMS_APART = 2.0
"""Sums of one series climb together: so many of them are like independent ones."""
NOBODY = KindCounts()
USUAL_CLIMBS = 12.0
USUAL_EXCESS = 1.2
"""How much further than tolerated the first climbs are taken to have gone."""
LEAST_TOLERATED, TOLERATED_BY_FAILURE = 0.75, 0.3
"""Climbs of independent failures rise so far above the first: a failure is a large step."""
FORGETTING = 0.995
BURST_DOUBT = 0.4
"""The more failures come together, the less is known of how: more than bursts explain."""
FIRST_DISPERSION = 1.5
LENT_VARIANCE, MOST_VARIANCE = 5.0, 500.0
"""About as many failures: those that the first value counts for, and those remembered."""


class Weights(NamedTuple):
    """What one failed and one good call of a kind add to a sum."""

    failed: float
    good: float


@dataclass(slots=True)
class Suspicion:
    """One sum: how much speaks for its rate, since when, and how healthy ones climbed.

    `calls` and `failed` are those after good ones that it was made of.
    """

    total: float = 0.0
    since: float = 0.0
    peak: float = 0.0
    climbs: float = USUAL_CLIMBS
    excess: float = USUAL_CLIMBS * USUAL_EXCESS
    calls: float = 0
    failed: float = 0

    @property
    def evidence(self) -> float:
        """The sum, for less where climbs mean less."""
        return self.total * min(self.climbs / self.excess, 1.0)

    def add(self, gain: float, fresh: KindCounts, at: float, ceiling: float) -> None:
        """Add what calls that ended at a time say; stays between 0 and `ceiling`."""
        if self.total == 0.0:
            self.since, self.calls, self.failed = at, 0, 0
        self.calls += fresh.calls
        self.failed += fresh.failed
        total = self.total + gain
        self.total = 0.0 if total < 0.0 else min(total, ceiling)
        if self.total > self.peak:
            self.peak = self.total

    def learn_climb(self, one_failure: float, alarm: float) -> None:
        """Remember how far a climb that has ended rose above that of one failure.

        In units of how far those of independent failures do.
        """
        if self.total > 0.0:
            return
        if self.peak > one_failure:
            tolerated = LEAST_TOLERATED + TOLERATED_BY_FAILURE * one_failure
            self.climbs = self.climbs * FORGETTING + 1
            self.excess *= FORGETTING
            self.excess += (min(self.peak, alarm) - one_failure) / tolerated
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


@dataclass(slots=True)
class Dispersion:
    """How much more than by chance the failures of a minute vary (quasi-likelihood).

    What was added waits until it is learned: a trouble is no part of what varies usually.
    """

    apart: float = FIRST_DISPERSION * LENT_VARIANCE
    by_chance: float = LENT_VARIANCE
    waiting: float = 0.0
    waiting_by_chance: float = 0.0

    @property
    def factor(self) -> float:
        """The variance over that of chance, at least 1."""
        return max(self.apart / self.by_chance, 1.0)

    def add(self, minute: KindCounts, expected: float) -> None:
        """Remember how far a minute was from what was expected."""
        calls, failed = minute
        if calls:
            self.waiting += (failed - calls * expected) ** 2
            self.waiting_by_chance += calls * expected * (1 - expected)

    def learn(self) -> None:
        """Take what waits for usual."""
        self.apart += self.waiting
        self.by_chance += self.waiting_by_chance
        self.drop()
        if self.by_chance > MOST_VARIANCE:
            self.apart *= MOST_VARIANCE / self.by_chance
            self.by_chance = MOST_VARIANCE

    def drop(self) -> None:
        """Forget what waits."""
        self.waiting = self.waiting_by_chance = 0.0


class Fear(NamedTuple):
    """What a sum fears: a rate of calls after good ones (None: that all fails).

    `weights` are what a call of each kind adds, `chance` how often, per call, a healthy sum
    begins a climb: it is how much rarer than e^-evidence a false alarm is.
    """

    rate: float | None
    weights: tuple[Weights, ...]
    chance: float

    def gain(
        self, split: Split, expectation: Expectation, seen: Suspicion, dispersion: float
    ) -> float:
        """Return what these calls add to a sum.

        That of calls after good ones is weighed by how well their usual share is known: it is
        the likelihood of the feared rate over that of a beta distribution, which what the sum
        has seen moves too. It counts for less by how much more than chance they vary.
        """
        if self.rate is None:
            return gain_of(split, self.weights)
        (calls, failed), *_ = split
        gain = gain_of(Split(NOBODY, *split[1:]), self.weights)
        if not calls:
            return gain
        weight = expectation.weight
        bad = expectation.fresh * weight + seen.failed
        good = (1 - expectation.fresh) * weight + seen.calls - seen.failed
        usual = _log_beta(bad + failed, good + calls - failed) - _log_beta(bad, good)
        feared = failed * log(self.rate) + (calls - failed) * log(1 - self.rate)
        together: float = expectation.burst**BURST_DOUBT
        return gain + (feared - usual) / (dispersion * together)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def fears_of(expectation: Expectation) -> tuple[Fear, ...]:
    """Return what is feared of a series: that all fails, and some rates.

    After a failure only a rate above the usual one there speaks for anything.
    """
    fresh, following, _ = expectation.kinds
    fears = [Fear(None, _weigh_outage(expectation), fresh * following * expectation.rarity)]
    rates = feared_rates(fresh, expectation.burst)
    return (*fears, *(fear_rate(rate, expectation) for rate in rates))


def fear_rate(rate: float, expectation: Expectation) -> Fear:
    """Return what a sum that fears a rate goes by."""
    fresh, weights = expectation.fresh, weigh_rate(rate, expectation)
    falls = -(fresh * weights[0].failed + (1 - fresh) * weights[0].good)
    # A sum passes its alarm by up to a failure: on average so much less is needed.
    beyond = (1 - fresh / rate) / weights[0].failed
    return Fear(rate, weights, falls * beyond * expectation.rarity)


def trouble_rate(fired: Suspicion, expected: float) -> float:
    """Return the rate of a trouble: surely reached by what was seen of it, of the rates feared.

    Trouble is over at a rate about halfway to it: above that, its sum does not fall. What fires
    is mostly worse than what follows, so that the share seen would end it too early.
    """
    least, most = expected * WORSE, expected + MUCH_WORSE
    seen = wilson_interval(fired.failed, fired.calls, Z_80)[0] if fired.calls else most
    return min(max(seen, min(least, most)), most, HIGHEST_FEARED)


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


def alarm_level(calls_a_week: float, series: int, chance: float) -> float:
    """Return the evidence at which a sum fires: more calls, or more series, need more.

    A healthy sum passes it about calls x chance x e^-evidence times (Lorden, 1971).
    """
    tries = calls_a_week * series**SERIES_COUNT_AS * SUMS_APART / FIRES_A_WEEK
    return max(LOWEST_ALARM, log(max(tries, 1.0) * chance))


def relief_of(margins: Iterable[float]) -> float:
    """Return how much less evidence each series needs now.

    One of many series needs more evidence than one alone: somebody is always unlucky. When r
    of them are suspicious at once, chance explains that less, and each needs log(r) less
    evidence (Benjamini and Hochberg, 1995). A margin is the evidence that a series lacks for
    an alarm of its own. The largest r counts for which r series lack at most log(r). A series
    that fired counts while that is news (`Fire.is_news`).
    """
    found = 0.0
    for rank, margin in enumerate(sorted(margins), 1):
        if margin <= log(rank):
            found = log(rank)
    return found


def _weigh_outage(expectation: Expectation) -> tuple[Weights, ...]:
    """Weigh runs of failures: where those are usual, no rate says that all fails now."""
    fresh, following, soon = expectation.kinds
    begins = Weights(0.0, _weights(HIGHEST_FEARED, fresh).good)
    rest = (max(usual, RUN_GOES_ON) for usual in (following, soon))
    return (begins, *(_weights(HIGHEST_FEARED, usual) for usual in rest))


def _weights(feared: float, usual: float) -> Weights:
    return Weights(log(feared / usual), log((1 - feared) / (1 - usual)))

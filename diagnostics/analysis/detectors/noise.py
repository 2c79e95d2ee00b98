"""The noise of hours: how much the rate of an hour varies around what is usual for it.

A mixture of kinds, each a beta distribution of another width. Its weights are learned from the
hours of the series and of its project; some weight is always left for an hour of another kind.

Beside it how many failures come together, so that so many calls count as one: retries that are
not told as such, or agents that share a broken input.
"""

from collections.abc import Sequence
from math import exp, lgamma, log
from typing import NamedTuple

from diagnostics.analysis.detectors.rhythm import HOUR

SPREADS = 0.0, 0.08, 0.4, 1.2, 4.0
"""The squared variation of an hour's rate around what is usual, of each kind of noise."""
NO_NOISE = (0.0,) * len(SPREADS)
PRIOR_NOISE = tuple(map(log, (0.879, 0.11, 0.011, 5.5e-4, 5.5e-5)))
RARE_NOISE, LEAST_NOISE = 1e-4, (0.0, 0.2, 0.3, 0.3, 0.2)
"""However calm the past, so much is left for an hour of another kind."""
LENT_NOISE, MOST_LENT = 0.2, 8.0
"""How much of what the other series' hours were like counts for a series."""
NOISE_DECAY = 0.998

Noise = Sequence[float]
"""The log likelihood of what was seen, of each kind of noise."""


def remember_noise(known: Noise, hour: Noise) -> list[float]:
    """Return what is known of the kinds of noise with one more hour."""
    best = max(hour)
    return [NOISE_DECAY * old + new - best for old, new in zip(known, hour, strict=True)]


def weigh_noise(own: Noise, project: Noise, pending: Sequence[Noise]) -> list[float]:
    """Return the log share of each kind: as the series, its project and what is pending tell."""
    others = [total - observed for total, observed in zip(project, own, strict=True)]
    best = max(others)
    lent = [max(LENT_NOISE * (each - best), -MOST_LENT) for each in others]
    sums = [sum(weights) for weights in zip(PRIOR_NOISE, own, lent, *pending, strict=True)]
    total = log_sum(sums)
    return [
        log((1 - RARE_NOISE) * exp(weight - total) + RARE_NOISE * least + 1e-300)
        for weight, least in zip(sums, LEAST_NOISE, strict=True)
    ]


def log_sum(logs: Sequence[float]) -> float:
    """Return the logarithm of a sum of which the logarithms are known."""
    best = max(logs)
    return best + log(sum([exp(each - best) for each in logs]))


def log_likelihood(bad: float, good: float, calls: float, failed: float) -> float:
    """Return the log likelihood of calls, in their order, whose rate is beta distributed."""
    both, passed = bad + good, calls - failed
    likely = lgamma(good + passed) - lgamma(good) - lgamma(both + calls) + lgamma(both)
    return likely + lgamma(bad + failed) - lgamma(bad) if failed else likely


QUARTER, QUARTERS = 900.0, 4
LENT_FAILURES, USUAL_COMPANY = 10.0, 2.0
"""Failures lent to a project, of which so many come together, and those of it to a series."""
LEAST_COMPANY, MOST_COMPANY = 1.15, 10.0
"""How many failures come together, for that to be believed, and at most."""

Quarters = Sequence[tuple[int, int]]
"""Calls and failures of each quarter of an hour."""
NO_QUARTERS: Quarters = ((0, 0),) * QUARTERS


def add_to_quarter(quarters: Quarters, at: float, calls: int, failed: int) -> Quarters:
    place = int(at % HOUR // QUARTER)
    known = quarters[place]
    return [*quarters[:place], (known[0] + calls, known[1] + failed), *quarters[place + 1 :]]


class Company(NamedTuple):
    """How the failures of quarters of an hour vary, and how they would if each were alone."""

    apart: float = 0.0
    alone: float = 0.0

    @classmethod
    def of(cls, quarters: Quarters) -> "Company":
        """Return it of the quarters of one hour, whatever the rate of that was."""
        busy = [quarter for quarter in quarters if quarter[0]]
        calls, failed = sum(quarter[0] for quarter in busy), sum(quarter[1] for quarter in busy)
        if len(busy) < 2 or not failed:
            return ALONE
        rate = failed / calls
        apart = sum((bad - each * rate) ** 2 for each, bad in busy) * len(busy) / (len(busy) - 1)
        alone = failed * (1 - rate)
        # Many failures tell no more than the few quarters that they are compared by.
        share = min(1.0, (len(busy) - 1) / alone) if alone else 1.0
        return cls(apart * share, alone * share)

    def plus(self, other: "Company") -> "Company":
        return Company(self.apart + other.apart, self.alone + other.alone)

    def size(self, project: "Company") -> float:
        """Return how many failures come together: shrunk to the project, that to one."""
        size = self._shrink(project._shrink(USUAL_COMPANY))
        return min(size, MOST_COMPANY) if size >= LEAST_COMPANY else 1.0

    def _shrink(self, usual: float) -> float:
        return (self.apart + usual * LENT_FAILURES) / (self.alone + LENT_FAILURES)


ALONE = Company()

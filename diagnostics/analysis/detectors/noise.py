"""The noise of hours: how much the rate of an hour varies around what is usual for it.

A mixture of kinds, each a beta distribution of another width. Its weights are learned from the
hours of the series and of its project; some weight is always left for an hour of another kind.
"""

from collections.abc import Sequence
from math import exp, lgamma, log

SPREADS = 0.0, 0.08, 0.4, 1.2, 4.0
"""The squared variation of an hour's rate around what is usual, of each kind of noise."""
NO_NOISE = (0.0,) * len(SPREADS)
PRIOR_NOISE = tuple(map(log, (0.879, 0.11, 0.011, 5.5e-4, 5.5e-5)))
RARE_NOISE, LEAST_NOISE = 1e-4, (0.0, 0.2, 0.3, 0.3, 0.2)
"""However calm the past, so much is left for an hour of another kind."""
LENT_NOISE, MOST_LENT = 0.2, 8.0
"""How much of what the other series' hours were like counts for a series."""
NOISE_DECAY = 0.998
FEW = 12
"""Calls up to which a product is quicker than gamma functions."""

Noise = Sequence[float]
"""The log likelihood of what was seen, of each kind of noise."""


def remember_noise(known: Noise, hour: Noise) -> list[float]:
    """Return what is known of the kinds of noise with one more hour."""
    best = max(hour)
    return [NOISE_DECAY * old + new - best for old, new in zip(known, hour, strict=True)]


def weigh_noise(own: Noise, project: Noise, pending: Sequence[Noise]) -> list[float]:
    """Return the log share of each kind: as the series, its project and what is pending tell."""
    lent = [
        min(max(LENT_NOISE * (total - mine), -MOST_LENT), MOST_LENT)
        for total, mine in zip(project, own, strict=True)
    ]
    told = [sum(one) for one in zip(PRIOR_NOISE, own, lent, *pending, strict=True)]
    total = log_sum(told)
    return [
        log((1 - RARE_NOISE) * exp(one - total) + RARE_NOISE * least + 1e-300)
        for one, least in zip(told, LEAST_NOISE, strict=True)
    ]


def log_sum(logs: Sequence[float]) -> float:
    """Return the logarithm of a sum of which the logarithms are known."""
    best = max(logs)
    return best + log(sum([exp(one - best) for one in logs]))


def log_likelihood(bad: float, good: float, calls: float, failed: float) -> float:
    """Return the log likelihood of calls, in their order, whose rate is beta distributed."""
    if calls <= FEW and calls == int(calls) and failed == int(failed):
        likely, both = 1.0, bad + good
        for step in range(int(failed)):
            likely *= (bad + step) / (both + step)
        both += failed
        for step in range(int(calls - failed)):
            likely *= (good + step) / (both + step)
        return log(likely)
    return (
        lgamma(bad + failed)
        - lgamma(bad)
        + lgamma(good + calls - failed)
        - lgamma(good)
        - lgamma(bad + good + calls)
        + lgamma(bad + good)
    )

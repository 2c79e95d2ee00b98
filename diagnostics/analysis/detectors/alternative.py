"""What is feared of a series: odds of failure higher by fixed factors, or the rate of late.

Each has a Shiryaev-Roberts statistic R = (1 + R) x likelihood if worse / likelihood as usual. As
usual, the mean of R grows by one a look: it passes a level A at most once in A looks.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import exp, log, log1p
from typing import NamedTuple

from diagnostics.analysis.detectors.noise import log_sum

EFFECTS = 0.7, 1.1, 1.6, 2.3, 3.2, 4.5, 6.5
"""Log odds ratios, from twice as many failures to nothing but failures."""
MOST_FEARED = 0.98
RECENT_CALLS, LENT_CALLS, LENT_EFFECT = 400, 4, 3
"""The latest 200 to 400 calls are a feared rate too; it begins with a few of one effect."""
COMPONENTS = len(EFFECTS) + 1
LOG_COMPONENTS = log(COMPONENTS)
NOTHING = -50.0
MILD_EFFECT = 1
"""Of an alarm, at least: what its end is weighed against."""


class Suspicion(NamedTuple):
    """The logarithm of each statistic, and failures and calls of late."""

    logs: Sequence[float] = (NOTHING,) * COMPONENTS
    failed: float = 0.0
    calls: float = 0.0

    @property
    def evidence(self) -> float:
        """The logarithm of the mean of all statistics."""
        return log_sum(self.logs) - LOG_COMPONENTS

    def plus(self, calls: float, failed: float, as_usual: float, usual: float) -> "Suspicion":
        """Return it after a look at calls, and how likely (as a logarithm) they are as usual."""
        raised = raise_rate(usual)
        lent = LENT_CALLS * raised[LENT_EFFECT].rate
        late = (self.failed + lent) / (self.calls + LENT_CALLS)
        latest = _log_rate(min(max(late, raised[0].rate), MOST_FEARED))
        good, logs = calls - failed, []
        for known, rates in zip(self.logs, (*raised, latest), strict=True):
            total = log1p(exp(known)) if known < -NOTHING else known
            total += failed * rates.if_failed + good * rates.if_good - as_usual
            logs.append(max(total, NOTHING))
        return Suspicion(logs, *recent(self.failed + failed, self.calls + calls))


def recent(failed: float, calls: float) -> tuple[float, float]:
    """Return failures and calls of late: half of their weight once there are too many."""
    share = RECENT_CALLS / 2 / calls if calls > RECENT_CALLS else 1.0
    return failed * share, calls * share


class LogRate(NamedTuple):
    """A rate, and the logarithms of it and of the rest."""

    rate: float
    if_failed: float
    if_good: float


@lru_cache(4096)
def raise_rate(usual: float) -> tuple[LogRate, ...]:
    """Return a usual rate raised by each effect."""
    odds = [usual / (1 - usual) * exp(effect) for effect in EFFECTS]
    return tuple(_log_rate(min(rate / (1 + rate), MOST_FEARED)) for rate in odds)


def _log_rate(rate: float) -> LogRate:
    return LogRate(rate, log(rate), log1p(-rate))

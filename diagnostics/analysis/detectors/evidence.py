"""The evidence for an alarm, and for its end.

What is feared of a series: odds of failure higher by fixed factors, or the rate of late. Each has
a Shiryaev-Roberts statistic R = (1 + R) x likelihood if worse / likelihood as usual. As usual,
the mean of R grows by one a look: it passes a level A at most once in A looks.

An alarm ends by the evidence that its calls are well again. Calls that come in bursts (an hourly
batch) may fail and go well in any order within one. So a burst counts as a whole: all of its
calls together, and nothing for a recovery before it has as many as the burst before, or is over.
Of steady traffic each minute is one by itself.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import exp, inf, log, log1p
from typing import NamedTuple

from diagnostics.analysis.detectors.noise import log_sum
from diagnostics.analysis.detectors.onset import CountedStretch
from diagnostics.analysis.detectors.usual import Usual

EFFECTS = 0.7, 1.1, 1.6, 2.3, 3.2, 4.5, 6.5
"""Log odds ratios, from twice as many failures to nothing but failures."""
MOST_FEARED = 0.98
RECENT_CALLS, LENT_CALLS, LENT_EFFECT = 400, 4, 3
"""The latest 200 to 400 calls are a feared rate too; it begins with a few of one effect."""
COMPONENTS = len(EFFECTS) + 1
LOG_COMPONENTS = log(COMPONENTS)
NOTHING = -50.0


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


DOUBTED = 3.0
"""The evidence for a recovery from which calls do not count for how bad it is."""
WORST, HEALED = 0.9, 0.7
LONG_PAUSE = 4.0
"""How many times as long as that between calls a pause is, for what follows to be a burst."""
BURST_PART, LONGEST_BURST = 1 / 2, 1800.0
"""A burst lasts for a part of the pause before it, and for so many seconds at most."""


class Burst(NamedTuple):
    """The calls of the latest burst since an onset; `is_whole`: it may be judged."""

    begin: float
    calls: int
    failed: int
    is_whole: bool


def latest_burst(stretches: Sequence[CountedStretch], since: float) -> Burst:
    """Return the latest burst of some stretches, with its calls since a moment."""
    groups: list[list[CountedStretch]] = []
    limit = -inf
    for place, stretch in enumerate(stretches):
        if stretch.at <= limit:
            groups[-1].append(stretch)
        else:
            groups.append([stretch])
            limit = stretch.at + _reach(stretches[:place], stretch.at)
    if not groups:
        return Burst(0.0, 0, 0, True)
    calls = [sum(stretch.calls for stretch in group) for group in groups[-2:]]
    recent = [stretch for stretch in groups[-1] if stretch.end > since]
    return Burst(
        groups[-1][0].at,
        sum(stretch.calls for stretch in recent),
        sum(stretch.failed for stretch in recent),
        calls[-1] >= calls[0] or stretches[-1].end > limit,
    )


def _reach(before: Sequence[CountedStretch], at: float) -> float:
    """Return for how long calls after a pause are one burst: 0 where it is a usual pause."""
    pause = at - before[-1].end if before else 0.0
    if pause <= 0:
        return 0.0
    since = before[-1].end - LONGEST_BURST
    near = (stretch.calls for stretch in reversed(before) if stretch.end > since)
    is_long = pause * sum(near) >= LONG_PAUSE * LONGEST_BURST
    return min(pause * BURST_PART, LONGEST_BURST) if is_long else 0.0


class Badness(NamedTuple):
    """How bad an alarm is: failures and calls since the onset, and of late; `calm` ends it."""

    failed: float = 0.0
    calls: float = 0.0
    late_failed: float = 0.0
    late: float = 0.0
    calm: float = 0.0

    def plus(self, calls: int, failed: int, usual: Usual) -> "Badness":
        """Return it with a burst: as usual is weighed against as bad as it was of late."""
        mildest, *_ = raise_rate(usual.before)
        rate = min(max((self.late_failed + 1) / (self.late + 2), mildest.rate), WORST)
        well = min(usual.before, rate * HEALED)
        gain = failed * log(well / rate) + (calls - failed) * log((1 - well) / (1 - rate))
        calm = max(self.calm + gain * usual.share, 0.0)
        if calm >= DOUBTED:
            return self._replace(calm=calm)
        late = recent(self.late_failed + failed, self.late + calls)
        return Badness(self.failed + failed, self.calls + calls, *late, calm)

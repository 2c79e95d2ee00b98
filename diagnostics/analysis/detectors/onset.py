"""Since when a series fails more than usual: a posterior over moments.

1. Beforehand, all moments since the first counted call are as likely, and so are rises of the
   odds by each of some factors.
2. Until the change calls fail at the usual rate, which is known as well as it was learned; from
   then on at the raised one. Each hour varies around that: by what is not known of its rhythm, and
   by the noise of the series. In the hour of the change a rise may be yet to reach its full height.
3. A stretch in which the rate changes has calls of both kinds, as evenly spread as all others.
4. Median and 95 % interval are read from the sum over noise, usual rates and rises. A gap between
   calls widens the interval by itself: all moments in it are as likely. Nothing fails in a gap: the
   onset is the first call after it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import exp
from typing import NamedTuple

from diagnostics.analysis.detectors.noise import log_likelihood
from diagnostics.analysis.detectors.rhythm import DAY, HOUR

MOST_STRETCHES, REACH_SECONDS = 96, 3 * DAY
"""The latest stretches that an onset is looked for in; the older ones become wider."""
COVERED = 0.98
"""Of the posterior, which held 95 % of the rises in kinds of traffic it was not chosen on."""
RISES = tuple(exp(0.4 + 0.7 * step) for step in range(9))
RISING = 0.15
"""The squared variation of the raised rate in the hour of the change, beside that of all hours."""
LEVELS = (-1.2, -0.72), (0.0, 0.0), (1.2, -0.72)
"""Standard errors that the usual rate may be off by, and the log weight of each."""
CUTS = 0.25, 0.75
"""Where the change may cut a stretch in two."""
LOWEST, HIGHEST = 0.0003, 0.98


class Onset(NamedTuple):
    """Since when, and the 95 % interval of that; seconds."""

    at: float
    low: float
    high: float


class CountedStretch(NamedTuple):
    at: float
    seconds: float
    calls: int
    failed: int

    @property
    def end(self) -> float:
        return self.at + self.seconds

    def plus(self, calls: int, failed: int) -> "CountedStretch":
        return self._replace(calls=self.calls + calls, failed=self.failed + failed)


class Background(NamedTuple):
    """What is usual for some stretches: the rate of each, and how well the rates are known.

    `error` is the standard error of the logarithm of all rates, which were learned before
    `learned_until`; `noise` has the squared variations of an hour and their log shares; a call
    counts for a `share` of an independent one.
    """

    rates: Sequence[float]
    error: float
    learned_until: float
    noise: Sequence[tuple[float, float]]
    share: float = 1.0


def add_stretch(stretches: list[CountedStretch], new: CountedStretch) -> None:
    """Add a stretch, or to one; when there are too many, two old neighbours become one."""
    if stretches and new.at >= stretches[-1].end and new.at > stretches[-1].at:
        place = len(stretches)
    else:
        place = bisect_right(stretches, new.at, key=_begin)
    known = stretches[place - 1] if place else None
    if known and (known.at == new.at or (new.at < known.end and new.seconds < known.seconds)):
        stretches[place - 1] = known.plus(new.calls, new.failed)
        return
    stretches.insert(place, new)
    if len(stretches) > MOST_STRETCHES:
        half = MOST_STRETCHES // 2
        old = [stretch for stretch in stretches[:half] if stretch.at >= new.at - REACH_SECONDS]
        stretches[:half] = [_join(old[place : place + 2]) for place in range(0, len(old), 2)]


def _begin(stretch: CountedStretch) -> float:
    return stretch.at


def _join(stretches: Sequence[CountedStretch]) -> CountedStretch:
    begin, end = stretches[0].at, stretches[-1].end
    calls = sum(stretch.calls for stretch in stretches)
    failed = sum(stretch.failed for stretch in stretches)
    return CountedStretch(begin, end - begin, calls, failed)


def find_onset(stretches: Sequence[CountedStretch], background: Background) -> Onset:
    """Return since when more than usual fails, and the interval that holds it at 95 %."""
    logs = [
        [noise_share + level_share + likelihood for likelihood in likelihoods]
        for variation, noise_share in background.noise
        for errors, level_share in LEVELS
        for likelihoods in _likelihoods(
            list(_hours(stretches, background, exp(errors * background.error), variation))
        )
    ]
    best = max(map(max, logs))
    weights = (sum([exp(weight - best) for weight in each]) for each in zip(*logs, strict=True))
    parts = [
        (end, seconds, seconds * weight)
        for (end, seconds), weight in zip(_moments(stretches), weights, strict=True)
    ]
    total = sum(weight for *_, weight in parts)
    outside = (1 - COVERED) / 2
    low, at, high = (_quantile(parts, total * q) for q in (outside, 0.5, 1 - outside))
    called = next(stretch for stretch in stretches if stretch.end >= at)
    return Onset(max(at, called.at), low, max(high, called.at))


def _moments(stretches: Sequence[CountedStretch]) -> Iterator[tuple[float, float]]:
    """Yield when the gap before each stretch ends, and each of its parts, and their seconds."""
    last = stretches[0].at
    for stretch in stretches:
        yield stretch.at, max(stretch.at - last, 0.0)
        for part in range(1, len(CUTS) + 1):
            yield stretch.at + stretch.seconds * part / len(CUTS), stretch.seconds / len(CUTS)
        last = stretch.end


class _Hour(NamedTuple):
    """The stretches of an hour (calls, failed), and what is usual for it.

    `before` are the log likelihoods of what came before each stretch, `whole` that of all of it;
    `rising` is the strength of the raised rate if the change lies in it.
    """

    counts: Sequence[tuple[float, float]]
    rate: float
    strength: float
    rising: float
    before: Sequence[float]
    whole: float
    is_learned: bool


def _hours(
    stretches: Sequence[CountedStretch], background: Background, factor: float, variation: float
) -> Iterator[_Hour]:
    """Yield hours at a usual rate times a factor."""
    share = background.share
    rated = zip(stretches, background.rates, strict=True)
    for _, grouped in groupby(rated, lambda stretch: stretch[0].at // HOUR):
        inside = list(grouped)
        hours = max(1.0, *(hour.seconds / HOUR for hour, _ in inside))
        strength, rising = hours / variation, hours / (variation + RISING)
        rate = min(max(inside[0][1] * factor, LOWEST), HIGHEST)
        counts = [(hour.calls * share, hour.failed * share) for hour, _ in inside]
        before, calls, failed = [], 0.0, 0.0
        for more, more_failed in counts:
            before.append(_likely(rate, strength, calls, failed))
            calls, failed = calls + more, failed + more_failed
        whole = _likely(rate, strength, calls, failed)
        # A wide stretch may end in hours that were not learned.
        is_learned = inside[-1][0].end <= background.learned_until
        yield _Hour(counts, rate, strength, rising, before, whole, is_learned)


def _likelihoods(hours: Sequence[_Hour]) -> Iterator[list[float]]:
    """Yield, for each rise, how likely all is if it began in each moment, the latest first.

    What was learned already is no evidence for the usual rate once more.
    """
    unlearned = sum(-hour.whole for hour in hours if hour.is_learned)
    for rise in RISES:
        usual, after, logs = unlearned + sum(hour.whole for hour in hours), 0.0, list[float]()
        for hour in reversed(hours):
            usual -= hour.whole
            later = _add_hour(logs, hour, rise, usual + after)
            after += later
        yield logs[::-1]


def _add_hour(logs: list[float], hour: _Hour, rise: float, others: float) -> float:
    """Add the moments of an hour, the latest first; return how likely all of it is if raised."""
    odds = hour.rate / (1 - hour.rate) * rise
    raised = min(odds / (1 + odds), HIGHEST)
    mixed = [raised + (hour.rate - raised) * cut for cut in CUTS]
    since = calls = failed = 0.0
    for (more, more_failed), before in zip(
        reversed(hour.counts), reversed(hour.before), strict=True
    ):
        rest = others + before
        logs += [
            rest + since + _likely(rate, hour.rising, more, more_failed) for rate in reversed(mixed)
        ]
        calls, failed = calls + more, failed + more_failed
        since = _likely(raised, hour.rising, calls, failed)
        logs.append(rest + since)
    return _likely(raised, hour.strength, calls, failed)


def _likely(rate: float, strength: float, calls: float, failed: float) -> float:
    return log_likelihood(strength, strength * (1 - rate) / rate, calls, failed)


def _quantile(parts: Iterable[tuple[float, float, float]], wanted: float) -> float:
    """Return where so much of the weight of (end, seconds, weight) lies before."""
    end = 0.0
    for end, seconds, weight in parts:
        if weight and weight >= wanted:
            return end - seconds + seconds * wanted / weight
        wanted -= weight
    return end

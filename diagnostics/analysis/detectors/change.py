"""The detector `change`: a series fails more than usual, since when, and how sure that is.

Shiryaev-Roberts over a mixture of effects, against what is usual for the series.

1. What is usual is a rate that is known as well as its failures tell: level x rhythm (hour of
   day, weekend) x noise of the hour. The noise is a mixture of beta-binomials of different
   widths, weighed by what the hours of the series and of its project were like; within the
   hour it adapts, so that a bad hour of a restless series explains itself. Where failures keep
   company (retries that are not told as such), so many calls count as one.
2. What is feared are odds that are higher by a fixed factor, and the rate of the latest calls.
   Each has a statistic R = (1 + R) x likelihood if worse / likelihood as usual. As usual, the
   mean of R grows by one a look: it passes a level A at most once in A looks.
3. An hour is learned when nothing is suspected. Until then the usual level believes it, and
   what is feared does not: it starts from what was learned before.
4. Since when is the posterior of the change over the latest stretches, at the moment it fires.
5. It clears by the same likelihoods turned round: as usual over as bad as it was.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import exp, lgamma, log, log1p
from operator import add
from typing import Any, NamedTuple

from diagnostics.analysis.detectors.results import WindowCounts
from diagnostics.analysis.statistics import LEAST_TRIALS

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
MINUTES, WEEK_HOURS, PLACES = 60, 168, 48
FIRST_WEEKDAY = 3
"""The first day of the epoch was a Thursday."""
STATE_FORM = 3
"""What a state is written as; a detector with another one begins with its past."""

PRIOR = 0.4, 5.0
"""Failures and successes that a level begins with: a rate of 1 % or of 20 % surprises little."""
LOWEST, HIGHEST, MOST_KNOWN = 0.0008, 0.95, 3000.0
"""Of a usual rate, and of how well it is known (the sum of a beta distribution's parameters)."""
LEVEL_CALLS = 20_000
"""Calls that a level remembers; from then on older ones count for half."""
RHYTHM_WEIGHT = 12.0
"""Failures that an hour of the day must have seen to count for half."""
UNSEEN_WEIGHT = 12.0
"""One over the squared variation of an hour of the week that the project has not seen yet."""
SPREADS = 0.0, 0.08, 0.4, 1.2, 4.0
"""The squared variation of an hour's rate around its level, of each kind of noise."""
PRIOR_NOISE = tuple(map(log, (0.879, 0.11, 0.011, 5.5e-4, 5.5e-5)))
RARE_NOISE, LEAST_NOISE = 1e-4, (0.0, 0.2, 0.3, 0.3, 0.2)
"""However calm the past, so much is left for an hour of another kind."""
LENT_NOISE, MOST_LENT = 0.2, 8.0
"""How much of what the other series' hours were like counts for a series."""
NOISE_DECAY = 0.998
KNOWN_FAILURES = 4
"""Failures from which the level is known, so that an hour tells of noise."""

QUARTER, QUARTERS = 900.0, 4
LENT_FAILURES = 10.0
"""Failures that were alone, lent to a project, and those of the project to a series."""
LEAST_COMPANY, MOST_COMPANY = 1.15, 10.0
"""How many failures come together, for that to be believed, and at most."""

EFFECTS = 0.7, 1.1, 1.6, 2.3, 3.2, 4.5, 6.5
"""What is feared: log odds ratios, from twice as many failures to nothing but failures."""
FACTORS = tuple(map(exp, EFFECTS))
COMPONENTS = len(EFFECTS) + 1
LOG_COMPONENTS = log(COMPONENTS)
MOST_FEARED = 0.98
RECENT_CALLS, LENT_CALLS, LENT_EFFECT = 400, 4, 3
"""The latest 200 to 400 calls are a feared rate too; it begins with a few of one effect."""
NOTHING = -50.0
RESTLESS, MOST_PENDING = 2.5, 24
"""The evidence above which hours are not learned, for so many hours at most."""

MOST_STRETCHES, ONSET_REACH, COVERED = 96, 3 * DAY, 0.95
"""The latest stretches that an onset is looked for in; the older ones become wider."""
ONSET_FACTORS = tuple(exp(0.5 * step) for step in range(1, 14))
DOUBTED = 3.0
"""The evidence for a recovery from which calls do not count for how bad it is."""
WORST, HEALED = 0.9, 0.7
KNOWN_SECONDS, NEW_SECONDS, ACCEPTED_CALLS, ACCEPTED_SHARE = 3 * DAY, DAY, 50, 0.8
"""After so long at a level it is the usual one; sooner where nothing was known before."""
SHOWN_CALLS, SHOWN_SECONDS = 50, 1800
WATCHED_SERIES = 7
"""Series of a project up to which one is watched by as much less evidence."""
FEW = 12
"""Calls up to which a product is quicker than gamma functions."""


class Onset(NamedTuple):
    """Since when, and the 95 % interval of that; seconds."""

    at: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Fire:
    """One alarm: when it fired, since when, and when it cleared; seconds.

    `is_usual`: it did not get better, but its level has become the usual one.
    """

    at: float
    onset: Onset
    cleared: float | None = None
    is_usual: bool = False


class HourCounts(NamedTuple):
    """What the hour that runs counted so far, and how well each kind of noise explains it."""

    calls: float = 0.0
    failed: float = 0.0
    noise: Sequence[float] = (0.0,) * len(SPREADS)
    quarters: Sequence[tuple[int, int]] = ((0, 0),) * QUARTERS

    def quarter_plus(self, at: float, calls: int, failed: int) -> Sequence[tuple[int, int]]:
        """Return the calls and failures of each quarter with more of them."""
        place = int(at % HOUR // QUARTER)
        known = self.quarters[place]
        changed = known[0] + calls, known[1] + failed
        return [*self.quarters[:place], changed, *self.quarters[place + 1 :]]


class Company(NamedTuple):
    """How the failures of quarters of an hour vary, and how they would if each were alone."""

    apart: float = 0.0
    alone: float = 0.0

    @classmethod
    def of(cls, quarters: Sequence[tuple[int, int]]) -> "Company":
        """Return it of the quarters of one hour, whatever the rate of that was."""
        told = [one for one in quarters if one[0]]
        calls, failed = sum(one[0] for one in told), sum(one[1] for one in told)
        if len(told) < 2 or not failed:
            return UNKNOWN
        rate = failed / calls
        apart = sum((bad - each * rate) ** 2 for each, bad in told)
        return cls(apart * len(told) / (len(told) - 1), failed * (1 - rate))

    def plus(self, other: "Company") -> "Company":
        """Return both together."""
        return Company(self.apart + other.apart, self.alone + other.alone)

    def size(self, usual: float) -> float:
        """Return how many failures come together, shrunk to a usual number."""
        return (self.apart + usual * LENT_FAILURES) / (self.alone + LENT_FAILURES)


UNKNOWN = Company()


class CountedStretch(NamedTuple):
    """Calls and failures of some seconds."""

    at: float
    seconds: float
    calls: int
    failed: int

    @property
    def end(self) -> float:
        """When it ended."""
        return self.at + self.seconds

    def plus(self, calls: int, failed: int) -> "CountedStretch":
        """Return it with more calls."""
        return self._replace(calls=self.calls + calls, failed=self.failed + failed)


class EndedHour(NamedTuple):
    """What an hour (of the epoch) counted, with its rhythm and its evidence of noise."""

    hour: int
    calls: float
    failed: float
    rhythm: float
    noise: Sequence[float]
    company: Company

    @classmethod
    def of(cls, usual: "Usual", counted: HourCounts, learned: "Learned") -> "EndedHour":
        """Return an hour that has ended; nothing of noise while the level was not known."""
        failed = learned.failed + sum(one.failed for one in learned.pending)
        noise = counted.noise if failed >= KNOWN_FAILURES else HourCounts().noise
        company = Company.of(counted.quarters)
        return cls(usual.hour, counted.calls, counted.failed, usual.rhythm, noise, company)


class ProjectPast(NamedTuple):
    """What the series of a project have in common: failures seen and expected by place, noise."""

    failed: Sequence[float] = (0.0,) * PLACES
    expected: Sequence[float] = (0.0,) * PLACES
    noise: Sequence[float] = (0.0,) * len(SPREADS)
    company: Company = UNKNOWN


@dataclass(slots=True)
class Learned:
    """What is known of a series; other after every hour.

    `calls` are weighed by rhythm: as many as would fail as often at an average hour.
    """

    failed: float = 0.0
    calls: float = 0.0
    failed_by_place: list[float] = field(default_factory=lambda: [0.0] * PLACES)
    calls_by_place: list[float] = field(default_factory=lambda: [0.0] * PLACES)
    noise: list[float] = field(default_factory=lambda: [0.0] * len(SPREADS))
    company: Company = UNKNOWN
    pending: list[EndedHour] = field(default_factory=list)

    @property
    def level(self) -> float:
        """The usual share of failures by place, all hours alike."""
        failed, calls = sum(self.failed_by_place), sum(self.calls_by_place)
        return (PRIOR[0] + failed) / (sum(PRIOR) + calls)

    def learn(self, hour: EndedHour) -> None:
        """Take an hour for usual."""
        best = max(hour.noise)
        for kind, found in enumerate(hour.noise):
            self.noise[kind] = NOISE_DECAY * self.noise[kind] + found - best
        self.company = self.company.plus(hour.company)
        place = place_of(hour.hour * HOUR)
        self.failed_by_place[place] += hour.failed
        self.calls_by_place[place] += hour.calls
        self.failed += hour.failed
        self.calls += hour.calls * hour.rhythm
        if self.calls > LEVEL_CALLS:
            self.failed, self.calls = self.failed / 2, self.calls / 2

    def move(self, failed: float, calls: float) -> None:
        """Take another level for usual, with the rhythm of the one before."""
        factor = self.level / (failed / calls)
        self.failed, self.calls = failed, calls
        # As many failures as before tell of the rhythm.
        self.calls_by_place = [factor * one for one in self.calls_by_place]

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> "Learned":
        """Read what `asdict` wrote."""
        pending = [EndedHour(*one)._replace(company=Company(*one[-1])) for one in kept["pending"]]
        return cls(**{**kept, "company": Company(*kept["company"]), "pending": pending})


def past_of(series: Iterable[Learned]) -> ProjectPast:
    """Return what the series of a project have in common."""
    failed, expected, noise = map(list, ProjectPast()[:3])
    company = UNKNOWN
    for one in series:
        if one.calls:
            level = one.level
            failed = list(map(add, failed, one.failed_by_place))
            expected = [e + n * level for e, n in zip(expected, one.calls_by_place, strict=True)]
            noise = list(map(add, noise, one.noise))
            company = company.plus(one.company)
    return ProjectPast(failed, expected, noise, company)


def place_of(at: float) -> int:
    """Return the place of a time in the week: hour of day, 24 more on weekends (UTC)."""
    is_weekend = (int(at // DAY) + FIRST_WEEKDAY) % 7 >= 5
    return int(at % DAY // HOUR) + 24 * is_weekend


class Rhythm(NamedTuple):
    """How much more than usual fails at a place of the week, and the variance of that.

    `variance` is what the project does not know of it, `own` what the series does not.
    """

    factor: float
    variance: float
    own: float


def rhythm_of(learned: Learned, past: ProjectPast, place: int) -> Rhythm:
    """Shrink a series' rhythm to its project's, and that to the same hour of other days."""
    level = learned.level
    expected = [calls * level for calls in learned.calls_by_place]
    others, _ = _shrink(past.failed, past.expected, (place + 24) % PLACES, 1.0)
    shared, seen = _shrink(past.failed, past.expected, place, others)
    factor, own = _shrink(learned.failed_by_place, expected, place, shared)
    return Rhythm(factor, 1 / (UNSEEN_WEIGHT + seen), 0.5 / (RHYTHM_WEIGHT + own))


def _shrink(
    failed: Sequence[float], expected: Sequence[float], place: int, base: float
) -> tuple[float, float]:
    """Return the factor at a place and its neighbours, shrunk to a base; failures seen there."""
    first, seen, foreseen = place - place % 24, 0.0, 0.0
    for step, weight in ((-1, 0.5), (0, 1.0), (1, 0.5)):
        near = first + (place + step) % 24
        seen += weight * failed[near]
        foreseen += weight * expected[near] * base
    return base * (seen + RHYTHM_WEIGHT) / (foreseen + RHYTHM_WEIGHT), seen


class Usual(NamedTuple):
    """What is expected of an hour.

    `rate` is what the usual level says that believes what is suspected, `before` what it was
    without that; `strengths` and `weights` are those of the noise, of the beta distributions
    and as log shares; a call counts for a `share` of an independent one; `alarm` is the evidence
    that fires.
    """

    hour: int
    rhythm: float
    rate: float
    before: float
    strengths: Sequence[float]
    weights: Sequence[float]
    share: float
    alarm: float

    def weigh(self, noise: Sequence[float]) -> float:
        """Return the log likelihood of what each kind of noise explains so well."""
        return _log_sum(list(map(add, self.weights, noise)))


def usual_of(learned: Learned, past: ProjectPast, at: float, looks: float) -> Usual:
    """Return what is expected of the hour of a time; an alarm may be false in so many looks."""
    rhythm = rhythm_of(learned, past, place_of(at))
    pending = sum(one.failed for one in learned.pending)
    pending_calls = sum(one.calls * one.rhythm for one in learned.pending)
    failed, calls = PRIOR[0] + learned.failed, sum(PRIOR) + learned.calls
    known = 1 / (failed + pending)
    return Usual(
        int(at // HOUR),
        rhythm.factor,
        _within((failed + pending) / (calls + pending_calls) * rhythm.factor),
        _within(failed / calls * rhythm.factor),
        [
            min(
                1 / (spread + known + rhythm.variance + (rhythm.own if spread else 0.0)), MOST_KNOWN
            )
            for spread in SPREADS
        ],
        _weigh_noise(learned, past),
        1 / _company_of(learned, past),
        log(max(looks, 1.0)),
    )


def _company_of(learned: Learned, past: ProjectPast) -> float:
    """Return how many failures come together: of the series, shrunk to its project, that to one."""
    size = learned.company.size(past.company.size(1.0))
    return min(size, MOST_COMPANY) if size >= LEAST_COMPANY else 1.0


def _weigh_noise(learned: Learned, past: ProjectPast) -> list[float]:
    """Return the log shares of the kinds of noise: of the series, its project, what is pending."""
    lent = [LENT_NOISE * (all_ - own) for all_, own in zip(past.noise, learned.noise, strict=True)]
    lent = [min(max(one, -MOST_LENT), MOST_LENT) for one in lent]
    best = max(lent)
    told = [
        prior + own + other - best + sum(hour.noise[kind] for hour in learned.pending)
        for kind, (prior, own, other) in enumerate(
            zip(PRIOR_NOISE, learned.noise, lent, strict=True)
        )
    ]
    best = max(told)
    shares = [exp(one - best) for one in told]
    total = sum(shares)
    return [
        log((1 - RARE_NOISE) * share / total + RARE_NOISE * least + 1e-300)
        for share, least in zip(shares, LEAST_NOISE, strict=True)
    ]


def _within(rate: float) -> float:
    return min(max(rate, LOWEST), HIGHEST)


class ChangeDetector:
    """What is remembered of one series between its calls."""

    def __init__(self, series: int = 1, past: Callable[[], ProjectPast] = ProjectPast) -> None:
        """Begin without a past; `series` share one false alarm a week.

        `past` tells what the series of the project have in common; it is asked once an hour.
        """
        self._series, self._past = series, past
        self.learned = Learned()
        self._usual: Usual | None = None
        self._hour = HourCounts()
        self._sums = [NOTHING] * COMPONENTS
        self._latest = 0.0, 0.0
        self._stretches: list[CountedStretch] = []
        self._began, self._told = 0.0, 0
        self._bad = self._before = 0.0, 0.0
        self._calm = 0.0
        self.fire: Fire | None = None
        self.is_usual = False

    def feed(self, at: float, calls: int, failed: int, seconds: float = MINUTE) -> Fire | None:
        """Take calls of some seconds from `at` on; return the alarm when it fires or clears."""
        if calls <= 0:
            return None
        failed = max(0, min(failed, calls))
        usual = self._usual
        if usual is None or at // HOUR > usual.hour:
            usual = self._open(at)
        self._told += calls
        _put(self._stretches, CountedStretch(at, seconds, calls, failed))
        if self.fire is not None:
            return self._doubt(at, calls, failed, self.fire, usual)
        quarters = self._hour.quarter_plus(at, calls, failed)
        weighed = calls * usual.share, failed * usual.share
        self._suspect(*weighed, self._explain(usual, *weighed), usual)
        self._hour = self._hour._replace(quarters=quarters)
        return self._fire(at, usual) if self.evidence >= usual.alarm else None

    @property
    def evidence(self) -> float:
        """What speaks for a worsening: the log of the mean statistic; of an alarm, as it fired."""
        return _log_sum(self._sums) - LOG_COMPONENTS

    @property
    def alarm(self) -> float:
        """The evidence at which it fires."""
        return self._usual.alarm if self._usual else log(self._series * WEEK_HOURS * MINUTES)

    @property
    def is_watched(self) -> bool:
        """Whether the evidence would be false once a week in this series, or a day in a few."""
        return self.evidence >= self.alarm - log(max(self._series, WATCHED_SERIES))

    @property
    def has_success(self) -> bool:
        """Whether any call went well that it remembers."""
        learned = self.learned
        is_learned = learned.failed < learned.calls
        is_pending = any(one.failed < one.calls for one in learned.pending)
        return is_learned or is_pending or any(one.failed < one.calls for one in self._stretches)

    @property
    def baseline(self) -> float | None:
        """The share that fails usually, before the alarm of a firing one; None: of few calls."""
        learned = self.learned
        failed, calls = self._before if self.fire else (learned.failed, learned.calls)
        return failed / calls if calls >= LEAST_TRIALS else None

    @property
    def counts(self) -> WindowCounts:
        """What was counted since the onset; where nothing fires, in 30 minutes or 50 calls."""
        if self.fire is not None:
            failed, calls = map(round, self._bad)
            return WindowCounts(calls, failed)
        failed = calls = 0
        for one in reversed(self._stretches):
            if calls >= SHOWN_CALLS and one.end <= self._stretches[-1].end - SHOWN_SECONDS:
                break
            calls, failed = calls + one.calls, failed + one.failed
        return WindowCounts(calls, failed)

    def end(self, at: float, *, is_usual: bool = False) -> Fire | None:
        """End the alarm whatever the calls say; begin anew."""
        ended, self.fire, self.is_usual = self.fire, None, is_usual
        self._sums = [NOTHING] * COMPONENTS
        self._latest, self._stretches, self.learned.pending = (0.0, 0.0), [], []
        self._hour, self._usual = HourCounts(), None
        return Fire(ended.at, ended.onset, at, is_usual) if ended else None

    def keep_firing(self, fired_at: float, onset: float) -> None:
        """Take over an alarm that another detector raised."""
        if self.fire is None:
            self._raise(fired_at, Onset(onset, onset, onset))

    def _explain(self, usual: Usual, calls: float, failed: float) -> float:
        """Return the log likelihood of calls as usual, and remember which noise explains them."""
        hour, odds = self._hour, (1 - usual.rate) / usual.rate
        noise = [
            known
            + _beta_binomial(
                strength + hour.failed, strength * odds + hour.calls - hour.failed, calls, failed
            )
            for known, strength in zip(hour.noise, usual.strengths, strict=True)
        ]
        before, after = map(usual.weigh, (hour.noise, noise))
        self._hour = HourCounts(hour.calls + calls, hour.failed + failed, noise)
        return after - before

    def _suspect(self, calls: float, failed: float, as_usual: float, usual: Usual) -> None:
        """Add a look to every statistic."""
        good, odds = calls - failed, usual.before / (1 - usual.before)
        rates = [min(odds * factor / (1 + odds * factor), MOST_FEARED) for factor in FACTORS]
        seen_failed, seen = self._latest
        latest = (seen_failed + LENT_CALLS * rates[LENT_EFFECT]) / (seen + LENT_CALLS)
        rates.append(min(max(latest, rates[0]), MOST_FEARED))
        for place, rate in enumerate(rates):
            total = self._sums[place]
            total = log1p(exp(total)) if total < -NOTHING else total
            total += failed * log(rate) + good * log1p(-rate) - as_usual
            self._sums[place] = max(total, NOTHING)
        seen_failed, seen = seen_failed + failed, seen + calls
        half = RECENT_CALLS / 2 / seen if seen > RECENT_CALLS else 1.0
        self._latest = seen_failed * half, seen * half

    def _open(self, at: float) -> Usual:
        """End the hour, learn what nothing speaks against, and say what to expect of the next."""
        learned, past, hour = self.learned, self._past(), self._hour
        self._began = self._began or at
        if self.fire is None:
            if self._usual is not None and hour.calls:
                learned.pending.append(EndedHour.of(self._usual, hour, learned))
            is_calm = self.evidence < RESTLESS
            while learned.pending and (is_calm or len(learned.pending) > MOST_PENDING):
                learned.learn(learned.pending.pop(0))
        self._hour = HourCounts()
        self._usual = usual_of(learned, past, at, self._looks_a_week(at))
        return self._usual

    def _looks_a_week(self, at: float) -> float:
        """Return how many minutes with calls all series of the project have in a week."""
        hours = max(at - self._began, 0.0) / HOUR
        by_hour = min((self._told + MINUTES) / (hours + 1), MINUTES)
        return self._series * WEEK_HOURS * by_hour

    def _fire(self, at: float, usual: Usual) -> Fire:
        """Fire, learn what lies before the onset, and drop what was suspected."""
        learned = self.learned
        onset = find_onset(self._stretches, usual.before, usual.share)
        pending, learned.pending = learned.pending, []
        for hour in pending:
            if (hour.hour + 1) * HOUR <= onset.low:
                learned.learn(hour)
        return self._raise(at, onset)

    def _raise(self, at: float, onset: Onset) -> Fire:
        since = [one for one in self._stretches if one.end > onset.at]
        before = [one for one in self._stretches if one.end <= onset.at]
        self._bad, self._calm = _sum(since), 0.0
        learned = self.learned.failed, self.learned.calls
        self._before = learned if learned[1] >= LEAST_TRIALS else _sum(before)
        self.fire, self.is_usual = Fire(at, onset), False
        return self.fire

    def _doubt(self, at: float, calls: int, failed: int, fire: Fire, usual: Usual) -> Fire | None:
        """Weigh as usual against as bad as it was; clear when that is as sure as an alarm."""
        bad_failed, bad = self._bad
        worse = usual.before / (1 - usual.before) * FACTORS[1]
        rate = min(max((bad_failed + 1) / (bad + 2), worse / (1 + worse)), WORST)
        well = min(usual.before, rate * HEALED)
        gain = failed * log(well / rate) + (calls - failed) * log((1 - well) / (1 - rate))
        self._calm = max(self._calm + gain * usual.share, 0.0)
        if self._calm < DOUBTED:
            self._bad = bad_failed + failed, bad + calls
        if self._calm > usual.alarm - log(self._series):
            return self.end(at)
        long = KNOWN_SECONDS if self._before[1] >= ACCEPTED_CALLS else NEW_SECONDS
        is_level = bad >= ACCEPTED_CALLS and bad_failed <= ACCEPTED_SHARE * bad
        if is_level and at - fire.at >= long:
            self.learned.move(bad_failed / 2, bad / 2)
            return self.end(at, is_usual=True)
        return None

    def state(self) -> dict[str, Any]:
        """Return what calls change, as plain JSON; what was learned is apart."""
        return {
            "form": STATE_FORM,
            "opened": self._usual and self._usual.hour,
            "usual": self._usual,
            "hour": self._hour,
            "sums": self._sums,
            "latest": self._latest,
            "stretches": self._stretches,
            "began": self._began,
            "told": self._told,
            "bad": self._bad,
            "before": self._before,
            "calm": self._calm,
            "fire": self.fire and [self.fire.at, list(self.fire.onset)],
            "is_usual": self.is_usual,
        }

    @classmethod
    def restore(
        cls,
        state: Mapping[str, Any],
        learned: Learned,
        series: int = 1,
        past: Callable[[], ProjectPast] = ProjectPast,
    ) -> "ChangeDetector":
        """Go on where a detector was left, from its state and what it had learned."""
        detector = cls(series, past)
        detector.learned = learned
        detector._usual = Usual(*state["usual"]) if state["usual"] else None
        detector._hour = HourCounts(*state["hour"])
        detector._sums = list(state["sums"])
        detector._latest = tuple(state["latest"])
        detector._stretches = [CountedStretch(*one) for one in state["stretches"]]
        detector._began, detector._told = state["began"], state["told"]
        detector._bad, detector._before = tuple(state["bad"]), tuple(state["before"])
        detector._calm, detector.is_usual = state["calm"], state["is_usual"]
        if state["fire"]:
            at, onset = state["fire"]
            detector.fire = Fire(at, Onset(*onset))
        return detector


def _sum(stretches: Iterable[CountedStretch]) -> tuple[float, float]:
    """Return failures and calls."""
    failed = calls = 0.0
    for one in stretches:
        failed, calls = failed + one.failed, calls + one.calls
    return failed, calls


def _beta_binomial(bad: float, good: float, calls: float, failed: float) -> float:
    """Return the log likelihood of calls in their order, of a rate that is beta distributed."""
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


def _log_sum(logs: Sequence[float]) -> float:
    best = max(logs)
    return best + log(sum([exp(one - best) for one in logs]))


def _put(stretches: list[CountedStretch], new: CountedStretch) -> None:
    """Add a stretch, or to one; when there are too many, two old neighbours become one."""
    place = bisect_right(stretches, new.at, key=_begin) if stretches else 0
    known = stretches[place - 1] if place else None
    if known and (known.at == new.at or (new.at < known.end and new.seconds < known.seconds)):
        stretches[place - 1] = known.plus(new.calls, new.failed)
        return
    stretches.insert(place, new)
    if len(stretches) > MOST_STRETCHES:
        half = MOST_STRETCHES // 2
        old = [one for one in stretches[:half] if one.at >= new.at - ONSET_REACH]
        stretches[:half] = [_join(old[place : place + 2]) for place in range(0, len(old), 2)]


def _begin(one: CountedStretch) -> float:
    return one.at


def _join(stretches: Sequence[CountedStretch]) -> CountedStretch:
    failed, calls = _sum(stretches)
    begin, end = stretches[0].at, stretches[-1].end
    return CountedStretch(begin, end - begin, int(calls), int(failed))


def find_onset(stretches: Sequence[CountedStretch], usual: float, share: float = 1.0) -> Onset:
    """Return since when more than usual fails, and the interval that holds it at 95 %.

    Before anything is counted all moments since the first stretch are as likely; a change
    between two calls cannot be told from one a moment later. A call counts for a share of an
    independent one.
    """
    logs = [_logs_since(stretches, usual, factor, share) for factor in ONSET_FACTORS]
    best = max(map(max, logs))
    begins = (stretches[0].at, *(one.end for one in stretches[:-1]))
    parts = []
    for begin, one, since in zip(begins, stretches, zip(*logs, strict=True), strict=True):
        wide = one.end - min(begin, one.at)
        parts.append((one.end, wide, wide * sum([exp(each - best) for each in since])))
    total = sum(weight for *_, weight in parts)
    outside = (1 - COVERED) / 2
    low, at, high = (_quantile(parts, total * q) for q in (outside, 0.5, 1 - outside))
    return Onset(at, low, high)


def _logs_since(
    stretches: Sequence[CountedStretch], usual: float, factor: float, share: float
) -> list[float]:
    """Return how much likelier everything from each stretch on is at odds times a factor."""
    odds = usual / (1 - usual) * factor
    worse = min(odds / (1 + odds), MOST_FEARED)
    if_failed, if_good = share * log(worse / usual), share * log((1 - worse) / (1 - usual))
    gains = [one.failed * if_failed + (one.calls - one.failed) * if_good for one in stretches]
    return list(accumulate(reversed(gains)))[::-1]


def _quantile(parts: Sequence[tuple[float, float, float]], wanted: float) -> float:
    """Return where so much of the weight of (end, width, weight) lies before."""
    for end, wide, weight in parts:
        if weight and weight >= wanted:
            return end - wide + wide * wanted / weight
        wanted -= weight
    return parts[-1][0]

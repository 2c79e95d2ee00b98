"""What is usual for a series: a rate that is known as well as its failures tell.

Level x rhythm x noise of the hour. An hour is learned when nothing is suspected; until then the
usual rate believes it, and what is feared starts from what was learned before.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from operator import add
from statistics import fmean
from typing import Any, NamedTuple, Self

from diagnostics.analysis.detectors.noise import (
    ALONE,
    NO_NOISE,
    NO_QUARTERS,
    SPREADS,
    Company,
    Noise,
    Quarters,
    add_to_quarter,
    log_likelihood,
    log_sum,
    remember_noise,
    weigh_noise,
)
from diagnostics.analysis.detectors.onset import Background, CountedStretch
from diagnostics.analysis.detectors.rhythm import (
    HOUR,
    PLACES,
    UNSEEN_PLACES,
    Drift,
    PlaceCounts,
    RecentCounts,
    place_of,
    rhythm_at,
)

PRIOR = 0.4, 5.0
"""Failures and successes that a level begins with: a rate of 1 % or of 20 % surprises little."""
LOWEST, HIGHEST, MOST_KNOWN = 0.0008, 0.95, 3000.0
"""Of a usual rate, and of how well it is known (the sum of a beta distribution's parameters)."""
LEVEL_CALLS = 20_000
"""Calls that a level remembers; from then on older ones count for half."""
KNOWN_FAILURES = 4
"""Failures from which the level is known, so that an hour tells of noise."""
LIKELY_NOISE = log(0.05)
"""The log share of a kind of noise from which an onset goes by it."""


class EndedHour(NamedTuple):
    """What an hour (of the epoch) counted, with its rhythm and its evidence of noise."""

    hour: int
    calls: float
    failed: float
    rhythm: float
    noise: Noise
    company: Company


class ProjectPast(NamedTuple):
    """What the series of a project have in common."""

    places: PlaceCounts = UNSEEN_PLACES
    noise: Noise = NO_NOISE
    company: Company = ALONE
    recent: RecentCounts = RecentCounts()


@dataclass(slots=True)
class Learned:
    """What is known of a series; other after every hour.

    `calls` are weighed by rhythm: as many as would fail as often at an average hour.
    """

    failed: float = 0.0
    calls: float = 0.0
    failed_by_place: list[float] = field(default_factory=lambda: [0.0] * PLACES)
    calls_by_place: list[float] = field(default_factory=lambda: [0.0] * PLACES)
    noise: Noise = NO_NOISE
    company: Company = ALONE
    recent: RecentCounts = field(default_factory=RecentCounts)
    drift: Drift = field(default_factory=Drift)
    pending: list[EndedHour] = field(default_factory=list)

    @property
    def level(self) -> float:
        """The usual share of failures by place, all hours alike."""
        failed, calls = sum(self.failed_by_place), sum(self.calls_by_place)
        return (PRIOR[0] + failed) / (sum(PRIOR) + calls)

    @property
    def places(self) -> PlaceCounts:
        """Failures by place, and those of the level without a rhythm."""
        level = self.level
        return PlaceCounts(self.failed_by_place, [calls * level for calls in self.calls_by_place])

    def learn(self, hour: EndedHour, variation: float) -> None:
        """Take an hour for usual.

        The more rates of hours vary by themselves, the less its failures tell of the hour of day.
        """
        expected = hour.calls * hour.rhythm * self.level
        share = 1 / (1 + variation * expected)
        self.noise = remember_noise(self.noise, hour.noise)
        self.company = self.company.plus(hour.company)
        place = place_of(hour.hour * HOUR)
        self.failed_by_place[place] += share * hour.failed
        self.calls_by_place[place] += share * hour.calls
        self.failed += hour.failed
        self.calls += hour.calls * hour.rhythm
        if self.calls > LEVEL_CALLS:
            self.failed, self.calls = self.failed / 2, self.calls / 2

    def move(self, failed: float, calls: float) -> None:
        """Take another level for usual, with the rhythm of the one before."""
        factor = self.level / (failed / calls)
        self.failed, self.calls = failed, calls
        # As many failures as before tell of the rhythm.
        self.calls_by_place = [factor * calls for calls in self.calls_by_place]

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Self:
        """Read what `asdict` wrote."""
        pending = [EndedHour(*row)._replace(company=Company(*row[-1])) for row in kept["pending"]]
        parts = {"company": Company, "recent": RecentCounts, "drift": Drift}
        read = {name: part(*kept[name]) for name, part in parts.items()}
        return cls(**{**kept, **read, "pending": pending})


def past_of(series: Iterable[Learned]) -> ProjectPast:
    places, noise, company, recent = ProjectPast()
    failed, expected = places.failed, places.expected
    for learned in series:
        if learned.calls:
            own_places = learned.places
            failed = list(map(add, failed, own_places.failed))
            expected = list(map(add, expected, own_places.expected))
            noise = list(map(add, noise, learned.noise))
            company = company.plus(learned.company)
            recent = recent.plus(*learned.recent.of_many)
    return ProjectPast(PlaceCounts(failed, expected), noise, company, recent)


class HourCounts(NamedTuple):
    """What the hour that runs counted so far, and how well each kind of noise explains it.

    `likely` is the log likelihood of all of it; a call counts for a share of an independent one.
    """

    calls: float = 0.0
    failed: float = 0.0
    noise: Noise = NO_NOISE
    likely: float = 0.0
    quarters: Quarters = NO_QUARTERS


class Usual(NamedTuple):
    """What is expected of an hour.

    `of_late` is how many times as much fails as by the hour of day. `rate` believes what is
    suspected, `before` does not; `strengths` and `weights` are those of the noise, of the beta
    distributions and as log shares; a call counts for a `share` of an independent one; `alarm` is
    the evidence that fires.
    """

    hour: int
    rhythm: float
    of_late: float
    rate: float
    before: float
    strengths: Sequence[float]
    weights: Sequence[float]
    share: float
    alarm: float

    @property
    def variation(self) -> float:
        """The squared variation of the rate of an hour around what is usual."""
        return sum(
            exp(weight) * spread for weight, spread in zip(self.weights, SPREADS, strict=True)
        )

    def plus_calls(self, hour: HourCounts, at: float, calls: int, failed: int) -> HourCounts:
        more, more_failed = calls * self.share, failed * self.share
        odds, good = (1 - self.rate) / self.rate, hour.calls - hour.failed
        noise = [
            known
            + log_likelihood(strength + hour.failed, strength * odds + good, more, more_failed)
            for known, strength in zip(hour.noise, self.strengths, strict=True)
        ]
        return HourCounts(
            hour.calls + more,
            hour.failed + more_failed,
            noise,
            log_sum(list(map(add, self.weights, noise))),
            add_to_quarter(hour.quarters, at, calls, failed),
        )

    def end(self, hour: HourCounts, learned: Learned) -> EndedHour:
        """Return the hour as it ended; nothing of noise while the level was not known."""
        failed = learned.failed + sum(hour.failed for hour in learned.pending)
        noise = hour.noise if failed >= KNOWN_FAILURES else NO_NOISE
        company = Company.of(hour.quarters)
        return EndedHour(self.hour, hour.calls, hour.failed, self.rhythm, noise, company)


def usual_of(learned: Learned, past: ProjectPast, at: float, looks: float, late: float) -> Usual:
    """Return what is expected of the hour of a time; an alarm may be false in so many looks.

    `late` is how many times as much the project's other series fail of late.
    """
    rhythm = rhythm_at(place_of(at), learned.places, past.places)
    pending = sum(hour.failed for hour in learned.pending)
    pending_calls = sum(hour.calls * hour.rhythm for hour in learned.pending)
    failed, calls = PRIOR[0] + learned.failed, sum(PRIOR) + learned.calls
    unknown = 1 / (failed + pending) + rhythm.variance
    own = [rhythm.own if spread else 0.0 for spread in SPREADS]
    return Usual(
        int(at // HOUR),
        rhythm.factor,
        late,
        _within((failed + pending) / (calls + pending_calls) * rhythm.factor * late),
        _within(failed / calls * rhythm.factor * late),
        [min(1 / (unknown + sum(pair)), MOST_KNOWN) for pair in zip(SPREADS, own, strict=True)],
        weigh_noise(learned.noise, past.noise, [hour.noise for hour in learned.pending]),
        1 / learned.company.size(past.company),
        log(max(looks, 1.0)),
    )


def background_of(
    stretches: Sequence[CountedStretch], learned: Learned, past: ProjectPast, usual: Usual
) -> Background:
    """Return what was usual for stretches, as it was learned before anything was suspected."""
    places = learned.places
    rhythms = [rhythm_at(place, places, past.places) for place in range(PLACES)]
    failed, calls = PRIOR[0] + learned.failed, sum(PRIOR) + learned.calls
    now = rhythms[place_of(usual.hour * HOUR)]
    until = (learned.pending[0].hour if learned.pending else usual.hour) * HOUR
    # What was learned is as usual by itself.
    levels = [
        failed / calls * (usual.of_late if stretch.end > until else 1.0) for stretch in stretches
    ]
    return Background(
        [
            _within(level * fmean(rhythms[place].factor for place in _places_of(stretch)))
            for stretch, level in zip(stretches, levels, strict=True)
        ],
        failed**-0.5,
        until,
        [
            (spread + now.variance + now.own, share)
            for spread, share in zip(SPREADS, usual.weights, strict=True)
            if share > LIKELY_NOISE
        ],
        usual.share,
    )


def _places_of(stretch: CountedStretch) -> Iterator[int]:
    """Yield the place of each hour of a stretch."""
    at = stretch.at // HOUR * HOUR
    while at < max(stretch.end, stretch.at + 1):
        yield place_of(at)
        at += HOUR


def _within(rate: float) -> float:
    return min(max(rate, LOWEST), HIGHEST)

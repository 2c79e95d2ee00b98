"""The rhythm of a series: how much more than usual fails in each hour of day, weekends apart.

Shrunk to that of its project, that to the same hour of the other days, and that to none. On other
unlike days, what the project's other series do of late is expected, as far as they usually drift.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, pi, sqrt
from typing import NamedTuple

HOUR, DAY = 3600.0, 86_400.0
PLACES = 48
FIRST_WEEKDAY = 3
"""The first day of the epoch was a Thursday."""
PRIOR_VARIATION, PRIOR_WEIGHT = 1 / 12, 290.0
"""The squared variation of the hours that is expected of a rhythm; it is known to one of itself."""
LEAST_VARIATION = 1 / 200


def place_of(at: float) -> int:
    """Return the place of a time in the week: hour of day, 24 more on weekends (UTC)."""
    is_weekend = (int(at // DAY) + FIRST_WEEKDAY) % 7 >= 5
    return int(at % DAY // HOUR) + 24 * is_weekend


@dataclass(frozen=True)
class PlaceCounts:
    """Failures by place: those seen, and those expected of so many calls without a rhythm."""

    failed: Sequence[float]
    expected: Sequence[float]

    @cached_property
    def weight(self) -> float:
        """Failures that a place must have seen to count for half: many where all are alike."""
        apart, squares = PRIOR_VARIATION * PRIOR_WEIGHT, PRIOR_WEIGHT
        for failed, expected in zip(self.failed, self.expected, strict=True):
            apart += (failed - expected) ** 2 - failed
            squares += expected * expected
        return 1 / max(apart / squares, LEAST_VARIATION)


UNSEEN_PLACES = PlaceCounts((0.0,) * PLACES, (0.0,) * PLACES)


class Rhythm(NamedTuple):
    """How much more than usual fails at a place, and the squared variation of that.

    `variance` is what the project does not know of it, `own` what the series does not.
    """

    factor: float
    variance: float
    own: float


def rhythm_at(place: int, series: PlaceCounts, project: PlaceCounts) -> Rhythm:
    weight, own_weight = project.weight, series.weight
    others, _ = _shrink(project, (place + 24) % PLACES, 1.0, weight)
    shared, seen = _shrink(project, place, others, weight)
    factor, own = _shrink(series, place, shared, own_weight)
    return Rhythm(factor, 1 / (weight + seen), 0.5 / (own_weight + own))


def _shrink(counts: PlaceCounts, place: int, base: float, weight: float) -> tuple[float, float]:
    """Return the factor at a place and its neighbours, shrunk to a base; failures seen there."""
    first, seen, expected = place - place % 24, 0.0, 0.0
    for step, part in ((-1, 0.5), (0, 1.0), (1, 0.5)):
        near = first + (place + step) % 24
        seen += part * counts.failed[near]
        expected += part * counts.expected[near] * base
    return base * (seen + weight) / (expected + weight), seen


FADED = 0.5
"""What an hour counts for, once the next one is over."""
OWN_VARIATION = 0.05
"""Hours of a series vary by themselves, which bounds what it tells of the others."""
USUAL_DRIFT, DRIFT_HOURS = 0.04, 100.0
"""The squared variation of all series together that a project begins with, and for how long."""
INCIDENT = 0.003
"""How likely all series get worse at once for another reason, by each factor alike (a density)."""


class RecentCounts(NamedTuple):
    """Failures until an hour, and those that were expected; what is older fades."""

    hour: int = 0
    failed: float = 0.0
    expected: float = 0.0

    def plus(self, hour: int, failed: float, expected: float) -> "RecentCounts":
        last = max(hour, self.hour)
        old, new = FADED ** (last - self.hour), FADED ** (last - hour)
        counts = old * self.failed + new * failed, old * self.expected + new * expected
        return RecentCounts(last, *counts)

    @property
    def of_many(self) -> "RecentCounts":
        """What a series tells of all: little more the longer it goes on."""
        share = 1 / (1 + OWN_VARIATION * (self.failed + self.expected))
        return RecentCounts(self.hour, share * self.failed, share * self.expected)


class Drift(NamedTuple):
    """How far all series of a project went from what was expected: squared logarithms, hours."""

    squares: float = 0.0
    hours: float = 0.0

    def follow(self, project: RecentCounts, own: RecentCounts, hour: int) -> tuple[float, "Drift"]:
        """Return how many times as much to expect as all others do of late; what is known then.

        They may drift as they usually do. What is beyond that is an incident, not expected.
        """
        shared, now = (rhythm.plus(hour - 1, 0.0, 0.0) for rhythm in (own.of_many, project))
        # A series that begins may not be among those of the project yet.
        failed, expected = max(now.failed - shared.failed, 0.0), now.expected - shared.expected
        if hour <= project.hour or expected < 1:
            return 1.0, self
        ratio, chance = log((failed + 1) / (expected + 1)), 1 / expected
        usual = (USUAL_DRIFT * DRIFT_HOURS + self.squares) / (DRIFT_HOURS + self.hours)
        spread = usual + chance
        likely = exp(-ratio * ratio / 2 / spread) / sqrt(2 * pi * spread)
        # Only a rise may be an incident, and only a rise makes an alarm.
        trusted = likely / (likely + INCIDENT) if ratio > 0 else 1.0
        known = trusted * usual / spread
        squares = max(self.squares + known * (ratio * ratio - chance), 0.0)
        return exp(max(ratio, 0.0) * known), Drift(squares, self.hours + known)

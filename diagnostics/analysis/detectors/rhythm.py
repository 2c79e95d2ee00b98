"""The rhythm of a series: how much more than usual fails at an hour of day, and of late.

1. The hour of day (UTC) is shrunk to that of the project, and that to none.
2. No calendar says which days are unlike others: weekends lie elsewhere, holidays move. What the
   other series of the project have in common of late is expected of a series too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from typing import NamedTuple

HOUR, DAY = 3600.0, 86_400.0
PLACES = 24
PRIOR_VARIATION, PRIOR_WEIGHT = 1 / 12, 290.0
"""The squared variation of the hours that is expected of a rhythm; it is known to one of itself."""
LEAST_VARIATION = 1 / 200


def place_of(at: float) -> int:
    """Return the place of a time in the day: its hour (UTC)."""
    return int(at % DAY // HOUR)


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

    @cached_property
    def factors(self) -> Sequence[float]:
        """How much more fails at each place, shrunk to no more."""
        return [self.shrink(place, 1.0, self.weight)[0] for place in range(PLACES)]

    def shrink(
        self, place: int, base: float, weight: float, even: float = 1.0
    ) -> tuple[float, float]:
        """Return the factor at a place and its neighbours, shrunk to a base; failures seen there.

        `even` is how many times as many fail, where all hours count alike, as are expected.
        """
        seen, expected = 0.0, 0.0
        for step, part in ((-1, 0.5), (0, 1.0), (1, 0.5)):
            near = (place + step) % PLACES
            seen += part * self.failed[near]
            expected += part * self.expected[near]
        return base * (seen + weight) / (expected * base * even + weight), seen


UNSEEN_PLACES = PlaceCounts((0.0,) * PLACES, (0.0,) * PLACES)


class Rhythm(NamedTuple):
    """How much more than usual fails at a place, and the squared variation of that.

    `variance` is what the project does not know of it, `own` what the series does not.
    """

    factor: float
    variance: float
    own: float


def rhythm_at(place: int, series: PlaceCounts, project: PlaceCounts) -> Rhythm:
    """Return the rhythm of a series at a place."""
    weight, shared = series.weight, project.factors[place]
    # A series that was seen at good hours only is better than it looks by these.
    told = sum(map(mul, series.expected, project.factors))
    even = sum(series.expected) / told if told else 1.0
    factor, own = series.shrink(place, shared, weight, even)
    _, seen = project.shrink(place, 1.0, project.weight)
    return Rhythm(factor, 1 / (project.weight + seen), 0.5 / (weight + own))


FADED = 0.25
"""What an hour counts for, once the next one is over."""
OWN_VARIATION, LATE_WEIGHT, MOST_OF_LATE = 0.05, 10.0, 2.0
"""Hours of a series vary by themselves, which bounds what it tells of the others. So many failures
speak for no change. All may fail so many times as much, or as little: more is no rhythm."""


class Lately(NamedTuple):
    """Failures of the latest hours, the last of them whole, and those to expect by hour of day.

    What a series keeps are calls, weighed by the hour of day: its level tells how many fail.
    """

    hour: int = 0
    failed: float = 0.0
    expected: float = 0.0

    def plus(self, hour: int, failed: float, expected: float) -> "Lately":
        """Return it with those of an hour; what is older fades."""
        last = max(hour, self.hour)
        old, new = FADED ** (last - self.hour), FADED ** (last - hour)
        return Lately(last, old * self.failed + new * failed, old * self.expected + new * expected)

    def at_level(self, level: float) -> "Lately":
        """Return what a series tells of all: little more the longer it goes on."""
        expected = self.expected * level
        share = 1 / (1 + OWN_VARIATION * (self.failed + expected))
        return Lately(self.hour, share * self.failed, share * expected)

    def without(self, own: "Lately", hour: int) -> float:
        """Return how many times as much fails of late in all series but one, at an hour."""
        mine, all_now = Lately(self.hour).plus(*own), self.plus(max(hour - 1, self.hour), 0.0, 0.0)
        fade = FADED ** (all_now.hour - self.hour)
        failed = max(all_now.failed - fade * mine.failed, 0.0) + LATE_WEIGHT
        expected = max(all_now.expected - fade * mine.expected, 0.0) + LATE_WEIGHT
        return min(max(failed / expected, 1 / MOST_OF_LATE), MOST_OF_LATE)


NOTHING_LATELY = Lately()

"""The rhythm of a series: how much more than usual fails in each hour of day, weekends apart.

Shrunk to that of its project, that to the same hour of the other days, and that to none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
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
    """Return the rhythm of a series at a place."""
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

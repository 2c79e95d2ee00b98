"""Percentiles of what was measured, interpolated between neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor


@dataclass(frozen=True, slots=True)
class Spread:
    """How many values there are, and where half, nine tenths and 95 % of them lie."""

    count: int
    half: float | None = None
    most: float | None = None
    nearly_all: float | None = None


def spread_of(values: Sequence[float]) -> Spread:
    """Give the median, the 90th and the 95th percentile."""
    if not values:
        return Spread(0)
    ordered = sorted(values)
    return Spread(len(ordered), *(percentile(ordered, share) for share in (0.5, 0.9, 0.95)))


def percentile(ordered: Sequence[float], share: float) -> float:
    """Give a percentile (share of 0 to 1) of sorted values, at least one."""
    place = share * (len(ordered) - 1)
    below = floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)

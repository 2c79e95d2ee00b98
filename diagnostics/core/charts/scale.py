"""One axis of rates for every row of a table.

The axis is the square root of the rate, with labelled ticks: 1 % and 3 % stay apart
on the axis that also shows 40 %.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

TICKS_OF_TOP: dict[float, tuple[float, ...]] = {
    0.05: (0.0, 0.01, 0.02, 0.05),
    0.10: (0.0, 0.01, 0.02, 0.05, 0.10),
    0.25: (0.0, 0.01, 0.05, 0.10, 0.25),
    0.50: (0.0, 0.01, 0.05, 0.10, 0.25, 0.50),
    1.0: (0.0, 0.01, 0.05, 0.10, 0.25, 0.50, 1.0),
}


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on the axis, in the units of the drawing."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class RateScale:
    """Maps a rate of 0 to `top` to a horizontal place between `left` and `right`.

    A linear one is for chances of success, which crowd at the upper end.
    """

    top: float
    left: float
    right: float
    is_linear: bool = False

    def position(self, rate: float) -> float:
        """Give the place of a rate; a rate outside the axis is drawn at its end."""
        part = min(max(rate, 0.0), self.top) / self.top
        share = part if self.is_linear else sqrt(part)
        return round(self.left + share * (self.right - self.left), 1)

    def ticks(self) -> tuple[Tick, ...]:
        """Give the labelled ticks, the first and the last at the ends."""
        quarters = tuple(self.top * part / 4 for part in range(5))
        rates = quarters if self.is_linear else TICKS_OF_TOP[self.top]
        return tuple(Tick(self.position(rate), f"{rate * 100:g}") for rate in rates)


def top_for(rates: Iterable[float]) -> float:
    """Choose the smallest axis that holds every rate."""
    highest = max(rates, default=0.0)
    return next((top for top in TICKS_OF_TOP if highest <= top), 1.0)


def scale_for(rates: Iterable[float], width: float, margin: float = 6) -> RateScale:
    """Build the common axis of a table, `margin` units free at both ends."""
    return RateScale(top_for(rates), margin, width - margin)

"""Scales: from figures and times to places, with the ticks of their axes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from math import copysign, sqrt

from diagnostics.figures import MINUS

RATES = (0.0, 0.01, 0.02, 0.05, 0.10, 0.25, 0.50, 1.0)
TOPS = (0.05, 0.10, 0.25, 0.50, 1.0)
RATE_MARGIN, DIFFERENCE_MARGIN = 6, 14
REACHES = (0.01, 0.02, 0.04, 0.08, 0.12, 0.20, 0.40, 0.60, 0.80, 1.0)


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on an axis; `at` is the time that it stands for."""

    place: float
    label: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps figures from `low` to `high` to places from `begin` to `end`.

    One that is not even gives small figures more room, by their roots; around zero, both ways.
    """

    low: float
    high: float
    begin: float
    end: float
    is_even: bool = True
    marked: tuple[float, ...] = ()

    @property
    def width(self) -> float:
        """The width of the drawing, whose margins are equal."""
        return self.begin + self.end

    def position(self, figure: float) -> float:
        """Return the place of a figure; one outside the axis is drawn at its end."""
        figure = min(max(figure, self.low), self.high)
        share = (figure - self.low) / (self.high - self.low)
        if not self.is_even:
            root = copysign(sqrt(abs(figure) / self.high), figure)
            share = sqrt(share) if self.low >= 0 else (1 + root) / 2
        return round(self.begin + share * (self.end - self.begin), 1)

    def ticks(self) -> Iterator[Tick]:
        """Return the ticks in percent or points; around zero they are signed."""
        for figure in self.marked or self.quarters():
            sign = "+" if self.low < 0 and figure else ""
            yield Tick(self.position(figure), f"{figure * 100:{sign}g}".replace("-", MINUS))

    def quarters(self) -> list[float]:
        """Return both ends and three figures between them, equally far apart."""
        step = (self.high - self.low) / 4
        return [round(self.low + part * step, 4) for part in range(5)]


def smallest(tops: Iterable[float], figures: Iterable[float]) -> float:
    """Return the first top that no figure is above, else 1."""
    highest = max(figures, default=0.0)
    return next((top for top in tops if highest <= top), 1.0)


def rate_scale(rates: Iterable[float], width: float) -> Scale:
    """Build the common axis of a table: the smallest from 0 that holds every rate."""
    top = smallest(TOPS, rates)
    # On a long axis 1 and 2 would stand too near to each other.
    marked = tuple(rate for rate in RATES if rate <= top and (rate != 0.02 or top <= 0.10))
    return Scale(0.0, top, RATE_MARGIN, width - RATE_MARGIN, is_even=False, marked=marked)


def difference_scale(bounds: Iterable[float], width: float) -> Scale:
    """Build the smallest common axis around zero that holds every bound, small ones readable."""
    reach = smallest(REACHES, map(abs, bounds))
    marked = (-reach, -reach / 4, 0.0, reach / 4, reach)
    begin, end = DIFFERENCE_MARGIN, width - DIFFERENCE_MARGIN
    return Scale(-reach, reach, begin, end, is_even=False, marked=marked)


def share_of(at: datetime, since: datetime, until: datetime) -> float:
    """Return how much of a stretch of time has passed, 0 to 1."""
    span = until - since
    return min(max((at - since) / span, 0.0), 1.0) if span else 0.0

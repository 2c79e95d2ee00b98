"""Rates and differences of rates with their 95 % intervals, on one axis."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from diagnostics.figures import points

TICKS_OF_TOP: dict[float, tuple[float, ...]] = {
    0.05: (0.0, 0.01, 0.02, 0.05),
    0.10: (0.0, 0.01, 0.02, 0.05, 0.10),
    0.25: (0.0, 0.01, 0.05, 0.10, 0.25),
    0.50: (0.0, 0.01, 0.05, 0.10, 0.25, 0.50),
    1.0: (0.0, 0.01, 0.05, 0.10, 0.25, 0.50, 1.0),
}


@dataclass(frozen=True, slots=True)
class ScaleTick:
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
        """Return the place of a rate; a rate outside the axis is drawn at its end."""
        part = min(max(rate, 0.0), self.top) / self.top
        share = part if self.is_linear else sqrt(part)
        return round(self.left + share * (self.right - self.left), 1)

    def ticks(self) -> tuple[ScaleTick, ...]:
        """Return the labelled ticks, the first and the last at the ends."""
        quarters = tuple(self.top * part / 4 for part in range(5))
        rates = quarters if self.is_linear else TICKS_OF_TOP[self.top]
        return tuple(ScaleTick(self.position(rate), f"{rate * 100:g}") for rate in rates)


def top_for(rates: Iterable[float]) -> float:
    """Choose the smallest axis that holds every rate."""
    highest = max(rates, default=0.0)
    return next((top for top in TICKS_OF_TOP if highest <= top), 1.0)


def scale_for(rates: Iterable[float], width: float, margin: float = 6) -> RateScale:
    """Build the common axis of a table, `margin` units free at both ends."""
    return RateScale(top_for(rates), margin, width - margin)


SUCCEED = "succeed"


@dataclass(frozen=True, slots=True)
class IntervalBar:
    """Horizontal places of the parts, and the same in words."""

    rate_x: float
    low_x: float
    width: float
    baseline_x: float | None
    grid: tuple[ScaleTick, ...]
    text: str


def interval_bar(
    scale: RateScale,
    rate: float,
    low: float,
    high: float,
    baseline: float | None,
    word: str = "degraded",
) -> IntervalBar:
    """Lay out one bar on the common axis; all figures are shares of 0 to 1.

    `word` says what the rate is of; of successes there is no baseline.
    """
    low_x = scale.position(low)
    return IntervalBar(
        rate_x=scale.position(rate),
        low_x=low_x,
        width=round(max(scale.position(high) - low_x, 1.0), 1),
        baseline_x=None if baseline is None else scale.position(baseline),
        grid=scale.ticks(),
        text=describe_interval(rate, low, high, baseline, word),
    )


def describe_interval(
    rate: float,
    low: float,
    high: float,
    baseline: float | None,
    word: str = "degraded",
) -> str:
    """Say what the bar shows, for readers who do not see it."""
    against = "no baseline yet" if baseline is None else f"baseline {baseline * 100:.1f} %"
    told = [
        f"{rate * 100:.1f} % {word}",
        f"95 % interval {low * 100:.1f} to {high * 100:.1f} %",
        *([] if word == SUCCEED else [against]),
    ]
    return ", ".join(told)


REACHES = (0.02, 0.05, 0.10, 0.25, 0.50, 1.0)


@dataclass(frozen=True, slots=True)
class DifferenceScale:
    """Maps a difference of -reach to +reach to a horizontal place, zero in the middle."""

    reach: float
    width: float
    margin: float = 14

    def position(self, difference: float) -> float:
        """Return the place of a difference; one outside the axis is drawn at its end."""
        inside = min(max(difference, -self.reach), self.reach)
        half = self.width / 2 - self.margin
        return round(self.width / 2 + inside / self.reach * half, 1)

    def ticks(self) -> tuple[ScaleTick, ...]:
        """Return the labelled ticks, in points."""
        return tuple(
            ScaleTick(self.position(part * self.reach), _label(part * self.reach))
            for part in (-1.0, -0.5, 0.0, 0.5, 1.0)
        )


@dataclass(frozen=True, slots=True)
class DifferenceBar:
    """Horizontal places of the parts, and the same in words."""

    x: float
    low_x: float
    width: float
    zero_x: float
    grid: tuple[ScaleTick, ...]
    text: str


def difference_scale(bounds: Iterable[float], width: float) -> DifferenceScale:
    """Choose the smallest common axis that holds every bound."""
    widest = max((abs(bound) for bound in bounds), default=0.0)
    reach = next((one for one in REACHES if widest <= one), 1.0)
    return DifferenceScale(reach, width)


def difference_bar(
    scale: DifferenceScale, difference: float, low: float, high: float
) -> DifferenceBar:
    """Lay out one bar; all figures are differences of shares, -1 to 1."""
    low_x = scale.position(low)
    return DifferenceBar(
        x=scale.position(difference),
        low_x=low_x,
        width=round(max(scale.position(high) - low_x, 1.0), 1),
        zero_x=scale.position(0.0),
        grid=scale.ticks(),
        text=f"{points(difference)}, 95 % interval {points(low)} to {points(high)}",
    )


def _label(difference: float) -> str:
    return f"{difference * 100:+g}" if difference else "0"

"""Difference bar: a difference of rates with its 95 % interval on one axis around zero."""

from collections.abc import Iterable
from dataclasses import dataclass

from diagnostics.core.charts.scale import Tick
from diagnostics.core.wording import points

REACHES = (0.02, 0.05, 0.10, 0.25, 0.50, 1.0)


@dataclass(frozen=True, slots=True)
class DifferenceScale:
    """Maps a difference of -reach to +reach to a horizontal place, zero in the middle."""

    reach: float
    width: float
    margin: float = 14

    def position(self, difference: float) -> float:
        """Give the place of a difference; one outside the axis is drawn at its end."""
        inside = min(max(difference, -self.reach), self.reach)
        half = self.width / 2 - self.margin
        return round(self.width / 2 + inside / self.reach * half, 1)

    def ticks(self) -> tuple[Tick, ...]:
        """Give the labelled ticks, in points."""
        return tuple(
            Tick(self.position(part * self.reach), _label(part * self.reach))
            for part in (-1.0, -0.5, 0.0, 0.5, 1.0)
        )


@dataclass(frozen=True, slots=True)
class DifferenceBar:
    """Horizontal places of the parts, and the same in words."""

    x: float
    low_x: float
    width: float
    zero_x: float
    grid: tuple[Tick, ...]
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

"""Rates and differences of rates with their 95 % intervals, on one axis."""

from dataclasses import dataclass
from functools import lru_cache

from diagnostics.figures import points
from diagnostics.web.charts.marks import Tone
from diagnostics.web.charts.scales import Scale

SUCCEED = "succeed"


@dataclass(frozen=True, slots=True)
class IntervalBar:
    """Horizontal places of the parts, and the same in words; `base_x` is what to compare with."""

    tone: Tone
    x: float
    low_x: float
    range_width: float
    base_x: float | None
    grid: str
    text: str
    width: float


def interval_bar(
    scale: Scale,
    tone: Tone,
    rate: float,
    low: float,
    high: float,
    baseline: float | None,
    word: str = "degraded",
) -> IntervalBar:
    """Lay out a rate on the common axis; all figures are shares of 0 to 1.

    `word` says what the rate is of; of successes there is no baseline.
    """
    against = "no baseline yet" if baseline is None else f"baseline {baseline * 100:.1f} %"
    words = [
        f"{rate * 100:.1f} % {word}",
        f"95 % interval {low * 100:.1f} to {high * 100:.1f} %",
        *([] if word == SUCCEED else [against]),
    ]
    return _lay_out(scale, tone, (rate, low, high), baseline, ", ".join(words))


def difference_bar(
    scale: Scale, tone: Tone, difference: float, low: float, high: float
) -> IntervalBar:
    """Lay out a difference of shares, -1 to 1, around zero."""
    text = f"{points(difference)}, 95 % interval {points(low)} to {points(high)}"
    return _lay_out(scale, tone, (difference, low, high), 0.0, text)


def _lay_out(
    scale: Scale, tone: Tone, figures: tuple[float, float, float], base: float | None, text: str
) -> IntervalBar:
    x, low_x, high_x = map(scale.position, figures)
    return IntervalBar(
        tone,
        x,
        low_x,
        round(max(high_x - low_x, 1.0), 1),
        None if base is None else scale.position(base),
        _grid(scale),
        text,
        scale.width,
    )


@lru_cache
def _grid(scale: Scale) -> str:
    """Return the lines of an axis, which all bars of a table have."""
    return "".join(f"M{tick.place} 0v20" for tick in scale.ticks())

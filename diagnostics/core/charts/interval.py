"""Interval bar: a rate, its 95 % interval and the baseline it is held against."""

from dataclasses import dataclass

from diagnostics.core.charts.scale import RateScale, Tick

SUCCEED = "succeed"


@dataclass(frozen=True, slots=True)
class IntervalBar:
    """Horizontal places of the parts, and the same in words."""

    rate_x: float
    low_x: float
    width: float
    baseline_x: float | None
    grid: tuple[Tick, ...]
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

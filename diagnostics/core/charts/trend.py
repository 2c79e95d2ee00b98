"""Trend: failures in equal stretches of time as columns, with an axis and marks."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

from diagnostics.core.wording import percent

WIDTH = 960
HEIGHT = 120
STEPS = (2, 4, 6, 8, 10)


@dataclass(frozen=True, slots=True)
class Gridline:
    """A labelled height of the axis."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Trend:
    """Paths of ordinary and hot columns, the axis, where marks stand, and words."""

    bars: str
    hot: str
    pitch: float
    grid: tuple[Gridline, ...]
    marks: tuple[float, ...]
    text: str
    width: int = WIDTH
    height: int = HEIGHT


def trend(
    failures: Sequence[int],
    calls: Sequence[int],
    marks: Sequence[float],
    hot_from: int | None,
) -> Trend:
    """Lay out a column a stretch; `marks` are places between 0 and 1."""
    top = _round_up(max(failures, default=0))
    pitch = WIDTH / max(len(failures), 1)
    drawn = [
        f"M{(place + 0.5) * pitch:.1f} {HEIGHT}v-{max(count / top * HEIGHT, 2):.1f}"
        if count
        else ""
        for place, count in enumerate(failures)
    ]
    begun = len(failures) if hot_from is None else hot_from
    return Trend(
        bars="".join(drawn[:begun]),
        hot="".join(drawn[begun:]),
        pitch=round(pitch * 0.72, 1),
        grid=tuple(
            Gridline(HEIGHT * (1 - part), f"{top * part:g}") for part in (0.5, 1.0)
        ),
        marks=tuple(round(mark * WIDTH, 1) for mark in marks),
        text=describe_trend(failures, calls, hot_from),
    )


def describe_trend(
    failures: Sequence[int], calls: Sequence[int], hot_from: int | None
) -> str:
    """Say the peak and how the end compares with the beginning."""
    if not any(failures):
        return "no failures in this range"
    peak = max(range(len(failures)), key=lambda place: failures[place])
    told = f"{sum(failures):,} failures; most at once {failures[peak]:,}"
    if hot_from is None:
        return told
    before, since = slice(0, hot_from), slice(hot_from, None)
    rates = [
        percent(sum(failures[part]) / sum(calls[part])) if sum(calls[part]) else "none"
        for part in (before, since)
    ]
    return f"{told}; of the calls {rates[0]} before it began to rise, {rates[1]} since"


def _round_up(count: int) -> int:
    """Give the next number that an axis may end with."""
    unit: int = 10 ** int(log10(max(count, 2)))
    fitting = (step * unit for step in STEPS if step * unit >= count)
    return next(fitting, 10 * unit)

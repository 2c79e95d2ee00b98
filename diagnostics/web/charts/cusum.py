"""The sum behind an alarm: how much speaks for a worsening, slot by slot (CUSUM).

1. Every failed call adds, every good one takes away, by the likelihoods of the usual share
   and of one that is clearly worse: the sum of the `change` detector without what that has
   learned of failures that keep company.
2. What is drawn is the evidence over the alarm: 1 is the line at which it fires.
3. When it last was zero is since when.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from diagnostics.analysis.detectors.baseline import HIGHEST_EXPECTED, LOWEST_EXPECTED, Expectation
from diagnostics.analysis.detectors.call_history import KindCounts, Split
from diagnostics.analysis.detectors.change import (
    SERIES_OF_A_PROJECT,
    Fear,
    alarm_level,
    fear_rate,
    feared_rates,
    gain_of,
)
from diagnostics.web.charts.scales import Scale
from diagnostics.web.charts.series import WIDTH, SeriesChart

HEIGHT = 48
WEEK = timedelta(days=7)
TOP = 2.0
"""A sum is capped at twice the alarm."""
AXIS = Scale(0.0, TOP, HEIGHT, 0.0)


@dataclass(frozen=True, slots=True)
class CusumStep:
    """A slot of the climb that goes on, and the sum at its end; 1 is the alarm."""

    at: datetime
    level: float


@dataclass(frozen=True, slots=True)
class Sums:
    """A strip of 1000 by 48 units below a chart, and the same as rows and words."""

    line: str
    alarm_y: float
    zero_x: float | None
    last_zero: datetime | None
    fired_at: datetime | None
    steps: Sequence[CusumStep]
    text: str
    height: int = HEIGHT


def draw_sums(chart: SeriesChart) -> Sums | None:
    """Lay out the strip of a chart; None where nothing is known of what is usual."""
    if chart.baseline is None or not chart.slots:
        return None
    levels = list(_levels(chart))
    steps = [
        CusumStep(chart.since + place * chart.width, level) for place, level in enumerate(levels)
    ]
    zero = _last_zero(levels)
    begun = None if zero is None else chart.since + zero * chart.width
    climb = () if zero is None else steps[zero:]
    fired = next((step.at + chart.width for step in climb if step.level >= 1.0), None)
    return Sums(
        line=_line(levels),
        alarm_y=AXIS.position(1.0),
        zero_x=None if zero is None else round(zero / len(levels) * WIDTH, 1),
        last_zero=begun,
        fired_at=fired,
        steps=climb,
        text=_words(levels, begun),
    )


def _levels(chart: SeriesChart) -> Iterator[float]:
    """Return the sum at the end of each slot, over the alarm; never below 0, capped."""
    usual = _usual(chart)
    fear = fear_rate(feared_rates(usual)[0], Expectation(usual, usual, usual))
    alarm, total = _alarm(chart, fear), 0.0
    for slot in chart.slots:
        gain = gain_of(Split(KindCounts(slot.runs, slot.degraded)), fear.weights)
        total = min(max(total + gain, 0.0), TOP * alarm)
        yield round(total / alarm, 3)


def _usual(chart: SeriesChart) -> float:
    share = chart.baseline[0] if chart.baseline else 0.0
    return min(max(share, LOWEST_EXPECTED), HIGHEST_EXPECTED)


def _alarm(chart: SeriesChart, fear: Fear) -> float:
    calls = sum(slot.runs for slot in chart.slots)
    a_week = calls * WEEK / (chart.width * len(chart.slots))
    return alarm_level(a_week, SERIES_OF_A_PROJECT, fear.chance)


def _last_zero(levels: Sequence[float]) -> int | None:
    """Return the first slot of the climb that goes on at the end; None: it is at zero."""
    if not levels[-1]:
        return None
    zeros = [place for place, level in enumerate(levels) if not level]
    return zeros[-1] + 1 if zeros else 0


def _line(levels: Sequence[float]) -> str:
    """A sum stands at the end of its slot; it begins at zero."""
    wide = WIDTH / len(levels)
    places = (f"{n * wide:.1f} {AXIS.position(level)}" for n, level in enumerate(levels, start=1))
    return f"M0 {AXIS.position(0.0)}L" + "L".join(places)


def _words(levels: Sequence[float], begun: datetime | None) -> str:
    now = levels[-1]
    if begun is None:
        return "Sum behind the alarm: zero, nothing speaks for a worsening"
    level = "above the alarm" if now >= 1.0 else f"{now:.0%} of the alarm"
    return f"Sum behind the alarm: {level}, last zero at {begun:%Y-%m-%d %H:%M} UTC"

"""The evidence behind an alarm, slot by slot: what the detector `change` makes of a chart.

Drawn is the evidence over that of an alarm: 1 is the line at which it fires. What is usual is
the baseline of the chart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from diagnostics.analysis.detectors.change import ChangeDetector
from diagnostics.analysis.detectors.replay import KNOWN_CALLS, SERIES_OF_A_PROJECT
from diagnostics.web.charts.scales import Scale
from diagnostics.web.charts.series import WIDTH, SeriesChart, x_of

HEIGHT = 48
TOP = 2.0
"""Evidence is drawn up to twice the alarm."""
AXIS = Scale(0.0, TOP, HEIGHT, 0.0)


@dataclass(frozen=True, slots=True)
class EvidenceStep:
    """A slot since the onset, and the evidence at its end; 1 is the alarm."""

    at: datetime
    level: float


@dataclass(frozen=True, slots=True)
class EvidenceStrip:
    """A strip of 1000 by 48 units below a chart, and the same as rows and words.

    The onset is that of the chart: an alarm weighs every minute of each series apart.
    """

    line: str
    alarm_y: float
    onset_x: float | None
    steps: Sequence[EvidenceStep]
    text: str
    height: int = HEIGHT


def draw_evidence(chart: SeriesChart) -> EvidenceStrip | None:
    """Lay out the strip of a chart; None where nothing is known of what is usual."""
    if chart.baseline is None or not chart.slots:
        return None
    levels, onset = _levels(chart, chart.baseline[0]), chart.onset
    first = (onset.at - chart.since) // chart.width if onset else len(levels)
    steps = [
        EvidenceStep(chart.since + place * chart.width, level) for place, level in enumerate(levels)
    ]
    return EvidenceStrip(
        line=_line(levels),
        alarm_y=AXIS.position(1.0),
        onset_x=x_of(chart, onset.at) if onset else None,
        steps=steps[max(first, 0) :],
        text=f"Evidence of degradation: {levels[-1]:.0%} of the alarm",
    )


def _levels(chart: SeriesChart, usual: float) -> list[float]:
    """Return the evidence at the end of each slot, over the alarm."""
    detector, levels = ChangeDetector(SERIES_OF_A_PROJECT), []
    detector.learned.failed, detector.learned.calls = usual * KNOWN_CALLS, KNOWN_CALLS
    seconds = chart.width.total_seconds()
    for place, slot in enumerate(chart.slots):
        begin = chart.since.timestamp() + place * seconds
        detector.feed(begin, slot.runs, slot.degraded, seconds)
        levels.append(round(min(max(detector.evidence / detector.alarm, 0.0), TOP), 3))
    return levels


def _line(levels: Sequence[float]) -> str:
    """Evidence stands at the end of its slot; it begins at zero."""
    wide = WIDTH / len(levels)
    places = (f"{n * wide:.1f} {AXIS.position(level)}" for n, level in enumerate(levels, start=1))
    return f"M0 {AXIS.position(0.0)}L" + "L".join(places)

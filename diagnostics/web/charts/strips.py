"""Strips of cells: attempts, looks of a rule, alarms of a back-test; bad cells are taller.

Below a chart, a line: what the detector `change` makes of each slot. Drawn is the evidence over
that of an alarm: 1 is the line at which it fires. What is usual is the baseline of the chart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from diagnostics.analysis.detectors.change import ChangeDetector
from diagnostics.analysis.detectors.replay import KNOWN_CALLS, SERIES_OF_A_PROJECT
from diagnostics.figures import Tone, plural
from diagnostics.web.charts.scales import Scale, Tick, share_of
from diagnostics.web.charts.series import WIDTH, SeriesChart, x_of

MOST_CELLS, PITCH = 24, 10
MOST_LOOKS, LOOK_PITCH, MOST_NAMED = 60, 4, 12


@dataclass(frozen=True, slots=True)
class EvaluationMark:
    tone: Tone
    word: str
    at: str


@dataclass(frozen=True, slots=True)
class Cell:
    x: int
    width: int
    tone: Tone
    label: str

    @property
    def box(self) -> tuple[int, int]:
        """Upper edge and height: colour is never alone."""
        return (0, 14) if self.tone == "bad" else (4, 6)

    @property
    def path(self) -> str:
        top, height = self.box
        return f"M{self.x} {top}h{self.width}v{height}h-{self.width}z"


@dataclass(frozen=True, slots=True)
class Strip:
    """Cells from left to right, ticks, and the same in words."""

    width: int
    cells: Sequence[Cell]
    text: str
    ticks: Sequence[Tick] = ()
    most_named: int = MOST_CELLS

    @property
    def is_busy(self) -> bool:
        """Whether there are too many cells to draw and name each."""
        return len(self.cells) > self.most_named

    @property
    def paths(self) -> list[tuple[Tone, str]]:
        tones = dict.fromkeys(cell.tone for cell in self.cells)
        return [(tone, "".join(c.path for c in self.cells if c.tone == tone)) for tone in tones]


def strip(attempts: Sequence[tuple[Tone, str]]) -> Strip:
    shown = attempts[-MOST_CELLS:]
    cells = [Cell(place * PITCH, PITCH - 2, *attempt) for place, attempt in enumerate(shown)]
    words = ", ".join(label for _, label in shown) or "none"
    return Strip(max(len(cells) * PITCH - 2, 0), cells, f"attempts: {words}")


def evaluation_strip(marks: Sequence[EvaluationMark]) -> Strip:
    """Lay out the latest evaluations, the newest at the right; equal neighbours are one cell."""
    shown = marks[-MOST_LOOKS:]
    cells: list[Cell] = []
    place = MOST_LOOKS - len(shown)
    for (tone, word), group in groupby(shown, lambda mark: (mark.tone, mark.word)):
        same = list(group)
        when = same[0].at if len(same) == 1 else f"{same[0].at} to {same[-1].at}"
        label = f"{word} {len(same)} times, {when}" if len(same) > 1 else f"{word} {when}"
        cells.append(Cell(place * LOOK_PITCH, len(same) * LOOK_PITCH - 1, tone, label))
        place += len(same)
    words = "; ".join(cell.label for cell in cells) or "none yet"
    text = f"last {plural(len(shown), 'evaluation')}: {words}"
    return Strip(MOST_LOOKS * LOOK_PITCH, cells, text, most_named=MOST_NAMED)


FIRES_WIDTH = 300
NARROWEST = 3
EVERY_DAYS = 7
LABEL = 40
"""Room that the last label needs."""


def fires(
    alarms: Sequence[tuple[datetime, datetime | None]], since: datetime, until: datetime
) -> Strip:
    """Lay out alarms, given as (fired, over), between two times."""

    def place(at: datetime) -> int:
        return round(share_of(at, since, until) * FIRES_WIDTH)

    cells = []
    for at, over in alarms:
        x = min(place(at), FIRES_WIDTH - NARROWEST)
        width = max(place(over or until) - place(at), NARROWEST)
        label = f"{at:%-d %b %H:%M} to {f'{over:%-d %b %H:%M}' if over else 'now'} UTC"
        cells.append(Cell(x, width, "bad", label))
    words = "; ".join(cell.label for cell in cells[:20]) or "no alarm"
    first = since.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    days = [first + timedelta(days=n) for n in range(0, (until - first).days + 1, EVERY_DAYS)]
    ticks = [Tick(place(at), f"{at:%-d %b}") for at in days]
    shown = [tick for tick in ticks if tick.place <= FIRES_WIDTH - LABEL]
    return Strip(FIRES_WIDTH, cells, words, shown)


EVIDENCE_HEIGHT = 48
EVIDENCE_TOP = 2.0
"""Drawn up to twice the alarm."""
EVIDENCE_AXIS = Scale(0.0, EVIDENCE_TOP, EVIDENCE_HEIGHT, 0.0)


@dataclass(frozen=True, slots=True)
class EvidenceStrip:
    """A strip of 1000 by 48 units below a chart, and the same as rows and words.

    The onset is that of the chart: an alarm weighs every minute of each series apart.
    """

    line: str
    alarm_y: float
    onset_x: float | None
    steps: Sequence[tuple[datetime, float]]
    """Slots since the onset, and the evidence at their ends; 1 is the alarm."""
    text: str
    height: int = EVIDENCE_HEIGHT


def draw_evidence(chart: SeriesChart) -> EvidenceStrip | None:
    """Lay out the strip of a chart; None where nothing is known of what is usual."""
    if chart.baseline is None or not chart.slots:
        return None
    levels, onset = _levels(chart, chart.baseline[0]), chart.onset
    first = (onset.at - chart.since) // chart.width if onset else len(levels)
    steps = [(chart.since + place * chart.width, level) for place, level in enumerate(levels)]
    # It begins at zero, and stands at the end of its slot.
    at, wide = EVIDENCE_AXIS.position, WIDTH / len(levels)
    ends = (f"{number * wide:.1f} {at(level)}" for number, level in enumerate(levels, start=1))
    return EvidenceStrip(
        line=f"M0 {at(0.0)}L{'L'.join(ends)}",
        alarm_y=EVIDENCE_AXIS.position(1.0),
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
        levels.append(round(min(max(detector.evidence / detector.alarm, 0.0), EVIDENCE_TOP), 3))
    return levels

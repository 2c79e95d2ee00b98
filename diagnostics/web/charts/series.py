"""Series over time: a share per slot with its interval, what is usual, and marks.

The box of the curve is stretched to the page's width, so the labels stand beside it: their
places along the width are percentages.

1. Slots without a trial are gaps: the line ends before them and begins again behind.
2. The axis of shares is linear from 0 to the smallest round top that holds every share
   and the baseline; intervals may leave it.
3. Ticks of time lie on round hours or days (UTC); marks are numbered from the left.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from diagnostics.analysis.statistics import wilson_interval
from diagnostics.figures import percent, plural
from diagnostics.store.windows import RunBucket, ceil
from diagnostics.web.charts.marks import Mark

WIDTH = 1000
# Numbers nearer to each other than this are read as one.
NUMBER_WIDTH = 18


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A labelled place on an axis: percent of its width, or units of its height."""

    place: float
    label: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """A mark on the axis of time, with its number."""

    x: float
    number: int
    mark: Mark

    @property
    def place(self) -> float:
        """Percent of the width."""
        return round(self.x / WIDTH * 100, 2)


def number_flags(flags: Sequence[Flag]) -> Iterator[AxisTick]:
    """Label flags with their numbers; those that stand too close share one label: 1-3."""
    near: list[Flag] = []
    for flag in flags:
        if near and flag.x - near[-1].x > NUMBER_WIDTH:
            yield _flag_label(near)
            near = []
        near.append(flag)
    if near:
        yield _flag_label(near)


def _flag_label(flags: Sequence[Flag]) -> AxisTick:
    first, last = flags[0], flags[-1]
    numbers = dict.fromkeys((str(first.number), str(last.number)))
    return AxisTick(round((first.place + last.place) / 2, 2), "-".join(numbers))


HEIGHT = 200
TOPS = (0.02, 0.05, 0.10, 0.20, 0.40, 0.60, 0.80, 1.0)
STEPS = tuple(
    timedelta(minutes=minutes)
    for minutes in (5, 10, 30, 60, 180, 360, 720, 1440, 2880, 10080, 43200, 172800)
)
MOST_TICKS = 7
MOST_MARKS = 20


@dataclass(frozen=True, slots=True)
class Since:
    """When a change began, and the 95 % interval of that time."""

    at: datetime
    low: datetime
    high: datetime


@dataclass(frozen=True, slots=True)
class SeriesChart:
    """What is drawn: failures of trials in slots of `width`, the first at `since`.

    `noun` is what a trial is called, `baseline` its usual share as (share, low, high),
    `query` the page's query string without times: a zoomed range is added to it.
    """

    name: str
    title: str
    since: datetime
    width: timedelta
    slots: Sequence[RunBucket]
    noun: str = "call"
    failing: str = "failed"
    baseline: tuple[float, float, float] | None = None
    onset: Since | None = None
    marks: Sequence[Mark] = ()
    query: str = ""

    @property
    def until(self) -> datetime:
        """The end of the last slot."""
        return self.since + len(self.slots) * self.width


@dataclass(frozen=True, slots=True)
class Point:
    """A slot as a row of the table."""

    at: datetime
    trials: int
    failed: int
    share: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Drawing:
    """Places of everything, in the units of a box of 1000 by 200."""

    chart: SeriesChart
    points: Sequence[Point]
    line: str
    dots: str
    band: str
    shares: Sequence[AxisTick]
    times: Sequence[AxisTick]
    baseline_y: float | None
    baseline_box: tuple[float, float] | None
    onset_x: float | None
    onset_box: tuple[float, float] | None
    flags: Sequence[Flag]
    numbers: Sequence[AxisTick]
    unshown_marks: int
    text: str
    width: int = WIDTH
    height: int = HEIGHT


def draw_series(chart: SeriesChart) -> Drawing:
    """Lay out a chart."""
    points = [_point(chart, index) for index in range(len(chart.slots))]
    top = top_of(chart, points)
    runs = list(_runs(points))
    marks = [m for m in chart.marks if chart.since <= m.at < chart.until]
    shown = marks[-MOST_MARKS:]
    flags = [Flag(_x(chart, m.at), n, m) for n, m in enumerate(shown, start=1)]
    return Drawing(
        chart=chart,
        points=points,
        line="".join(_line(chart, run, top) for run in runs if len(run) > 1),
        dots="".join(_dot(chart, points[run[0]], top) for run in runs if len(run) == 1),
        band="".join(_band(chart, run, points, top) for run in runs),
        shares=[AxisTick(_y(share, top), f"{share * 100:g}") for share in _quarters(top)],
        times=list(_ticks(chart)),
        baseline_y=_y(chart.baseline[0], top) if chart.baseline else None,
        baseline_box=_box_of(chart.baseline, top),
        onset_x=_x(chart, chart.onset.at) if chart.onset else None,
        onset_box=_onset_box(chart),
        flags=flags,
        numbers=list(number_flags(flags)),
        unshown_marks=len(marks) - len(shown),
        text=describe_series(chart, points),
    )


def top_of(chart: SeriesChart, points: Sequence[Point]) -> float:
    """Choose the smallest round top that holds every share and the baseline."""
    usual = [chart.baseline[0]] if chart.baseline else []
    highest = max([*usual, *(point.share or 0.0 for point in points)], default=0.0)
    return next((top for top in TOPS if highest <= top), 1.0)


def describe_series(chart: SeriesChart, points: Sequence[Point]) -> str:
    """Say what the curve shows, for readers who do not see it; times are in UTC."""
    known = [point for point in points if point.share is not None]
    if not known:
        return f"{chart.title}: no {chart.noun} in this time"
    peak = max(known, key=lambda point: point.share or 0.0)
    last = known[-1]
    told = [
        f"{chart.title}: highest {percent(peak.share)} of"
        f" {plural(peak.trials, chart.noun)} at {_written(peak.at)}",
        f"latest {percent(last.share)} of {plural(last.trials, chart.noun)}",
    ]
    if chart.baseline:
        told.append(f"baseline {percent(chart.baseline[0])}")
    if chart.onset:
        told.append(f"degrading since {_written(chart.onset.at)}")
    return ", ".join(told)


def _written(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def _point(chart: SeriesChart, index: int) -> Point:
    slot, at = chart.slots[index], chart.since + index * chart.width
    if not slot.runs:
        return Point(at, 0, 0, None, None, None)
    low, high = wilson_interval(slot.degraded, slot.runs)
    return Point(at, slot.runs, slot.degraded, slot.share, low, high)


def _runs(points: Sequence[Point]) -> Iterator[list[int]]:
    """Return stretches of slots without a gap."""
    for is_known, group in groupby(
        range(len(points)), key=lambda index: points[index].share is not None
    ):
        if is_known:
            yield list(group)


def _x(chart: SeriesChart, at: datetime) -> float:
    whole = chart.until - chart.since
    share = min(max((at - chart.since) / whole, 0.0), 1.0) if whole else 0.0
    return round(share * WIDTH, 1)


def _y(share: float, top: float) -> float:
    return round(HEIGHT - min(max(share, 0.0), top) / top * HEIGHT, 1)


def _middle(chart: SeriesChart, index: int) -> float:
    return _x(chart, chart.since + (index + 0.5) * chart.width)


def _line(chart: SeriesChart, run: Sequence[int], top: float) -> str:
    places = (f"{_middle(chart, i)} {_y(chart.slots[i].share, top)}" for i in run)
    return "M" + "L".join(places)


def _dot(chart: SeriesChart, point: Point, top: float) -> str:
    """Draw a slot between two gaps: a line needs two."""
    x = _x(chart, point.at + chart.width / 2)
    return f"M{x} {_y(point.share or 0.0, top)}h0"


def _band(chart: SeriesChart, run: Sequence[int], points: Sequence[Point], top: float) -> str:
    """Draw the interval of a stretch, as wide as its slots at both ends."""
    first, last = points[run[0]], points[run[-1]]
    begin, end = _x(chart, first.at), _x(chart, last.at + chart.width)
    upper = [f"{_middle(chart, i)} {_y(points[i].high or 0.0, top)}" for i in run]
    lower = [f"{_middle(chart, i)} {_y(points[i].low or 0.0, top)}" for i in run]
    path = [
        f"{begin} {_y(first.high or 0.0, top)}",
        *upper,
        f"{end} {_y(last.high or 0.0, top)}",
        f"{end} {_y(last.low or 0.0, top)}",
        *reversed(lower),
        f"{begin} {_y(first.low or 0.0, top)}",
    ]
    return "M" + "L".join(path) + "Z"


def _quarters(top: float) -> list[float]:
    return [round(top * part / 4, 4) for part in range(5)]


def _ticks(chart: SeriesChart) -> Iterator[AxisTick]:
    span = chart.until - chart.since
    step = next((one for one in STEPS if span / one <= MOST_TICKS), STEPS[-1])
    at = ceil(chart.since, step)
    while at <= chart.until:
        yield AxisTick(round(_x(chart, at) / WIDTH * 100, 2), _label(at, step), at)
        at += step


def _label(at: datetime, step: timedelta) -> str:
    return f"{at:%-d %b}" if step >= timedelta(days=1) else f"{at:%H:%M}"


def _box_of(baseline: tuple[float, float, float] | None, top: float) -> tuple[float, float] | None:
    """Return upper edge and height of the band of what is usual."""
    if baseline is None:
        return None
    _, low, high = baseline
    upper = _y(high, top)
    return upper, round(max(_y(low, top) - upper, 1.0), 1)


def _onset_box(chart: SeriesChart) -> tuple[float, float] | None:
    """Return left edge and width of the interval of the onset."""
    if chart.onset is None:
        return None
    left = _x(chart, chart.onset.low)
    return left, round(max(_x(chart, chart.onset.high) - left, 1.0), 1)


APART = 2
"""Ticks that are nearer to each other (in the drawing's units) are drawn as one."""


def draw_ticks(shares: Iterable[float], width: float, height: int) -> str:
    """Draw marks as an SVG path, each at its share of the width."""
    drawn: list[int] = []
    for x in sorted(round(share * width) for share in shares):
        if not drawn or x - drawn[-1] > APART:
            drawn.append(x)
    return "".join(f"M{x} 0v{height}" for x in drawn)

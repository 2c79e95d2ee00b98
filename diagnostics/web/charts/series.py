"""Series over time: a share per slot with its interval, what is usual, and marks.

The box of the curve is stretched to the page's width, so the labels stand beside it: their
places along the width are percentages.

1. Slots are added up to the narrowest round width at which three of four buckets carry 20
   trials, else to the widest that leaves six. A bucket of fewer is a gap: the line ends before
   it and begins again behind. One that is not over is a dot beside the line.
2. The axis of shares is linear from 0 to the smallest round top that holds every interval
   and the baseline.
3. Ticks of time lie on round hours or days of the reader's zone; marks are numbered from
   the left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import groupby
from operator import itemgetter

from diagnostics.analysis.series import SeriesOnset
from diagnostics.analysis.statistics import LEAST_TRIALS, wilson_interval
from diagnostics.figures import percent, plural
from diagnostics.store.windows import RunBucket, ceil, floor, merged
from diagnostics.web.charts.scales import Scale, Tick, share_of, smallest

WIDTH = 1000
# Numbers nearer to each other than this are read as one.
NUMBER_WIDTH = 18


@dataclass(frozen=True, slots=True)
class Mark:
    """One moment: `kind` is that of a deploy, told or observed, or incident."""

    at: datetime
    kind: str
    label: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    x: float
    number: int
    mark: Mark

    @property
    def place(self) -> float:
        """Percent of the width."""
        return round(self.x / WIDTH * 100, 2)


def number_flags(flags: Sequence[Flag]) -> Iterator[Tick]:
    """Label flags with their numbers; those that stand too close share one label: 1-3."""
    near: list[Flag] = []
    for flag in flags:
        if near and flag.x - near[-1].x > NUMBER_WIDTH:
            yield _flag_label(near)
            near = []
        near.append(flag)
    if near:
        yield _flag_label(near)


def _flag_label(flags: Sequence[Flag]) -> Tick:
    first, last = flags[0], flags[-1]
    numbers = dict.fromkeys((str(first.number), str(last.number)))
    return Tick(round((first.place + last.place) / 2, 2), "-".join(numbers))


HEIGHT = 200
TOPS = (0.02, 0.05, 0.10, 0.20, 0.40, 0.60, 0.80, 1.0)
STEPS = tuple(
    timedelta(minutes=minutes)
    for minutes in (5, 10, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 43200, 172800)
)
LEAST_BUCKETS, MOST_BUCKETS = 6, 60
FEW_TRIALS = 5
"""The least trials of a drawn bucket where no bucket has enough for a narrow interval."""
MOST_TICKS = 7
MOST_MARKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """What is drawn over time, whatever it shows: slots of `width`, the first at `since`.

    `query` is the page's query string without times: a zoomed range is added to it. Slots that
    end after `as_of`, the moment of the counts, are not over yet.
    """

    name: str
    title: str
    since: datetime
    width: timedelta
    marks: Sequence[Mark] = ()
    query: str = ""
    as_of: datetime | None = None

    @property
    def count(self) -> int:
        raise NotImplementedError

    @property
    def until(self) -> datetime:
        return self.since + self.count * self.width


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesChart(OverTime):
    """Failures of trials.

    `noun` is what a trial is called, `baseline` its usual share as (share, low, high), `page`
    the address that a zoomed range leads to, the page of the chart unless given.
    """

    slots: Sequence[RunBucket]
    noun: str = "call"
    failing: str = "failed"
    baseline: tuple[float, float, float] | None = None
    onset: SeriesOnset | None = None
    page: str = ""
    height: int = HEIGHT

    @property
    def count(self) -> int:
        return len(self.slots)


@dataclass(frozen=True, slots=True)
class Point:
    """A bucket as a row of the table; without an interval it is not drawn."""

    at: datetime
    trials: int
    failed: int
    share: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Drawing:
    """Places of everything, in the units of a box that is 1000 wide."""

    chart: SeriesChart
    points: Sequence[Point]
    line: str
    dots: str
    band: str
    shares: Sequence[Tick]
    times: Sequence[Tick]
    baseline_y: float | None
    baseline_box: tuple[float, float] | None
    onset_x: float | None
    onset_box: tuple[float, float] | None
    flags: Sequence[Flag]
    numbers: Sequence[Tick]
    unshown_marks: int
    # Begin and width of the bucket that is not over yet.
    unfinished: tuple[float, float] | None
    text: str
    width: int = WIDTH

    @property
    def height(self) -> int:
        return self.chart.height


def widen(chart: SeriesChart) -> SeriesChart:
    """Add slots up to buckets that carry a rate; to the widest where most would not."""
    widened = chart
    span = len(chart.slots) * chart.width
    for width in STEPS:
        if width % chart.width or not LEAST_BUCKETS <= span / width <= MOST_BUCKETS:
            continue
        since = floor(chart.since, width)
        before = [RunBucket(0, 0)] * ((chart.since - since) // chart.width)
        slots = merged([*before, *chart.slots], width // chart.width)
        widened = replace(chart, since=since, width=width, slots=slots)
        if carries_rate(widened):
            break
    return widened


def carries_rate(chart: SeriesChart) -> bool:
    """Whether three of four buckets with trials have enough of them to be drawn."""
    known = [slot.runs for slot in chart.slots if slot.runs]
    return bool(known) and sum(runs >= LEAST_TRIALS for runs in known) >= len(known) * 0.75


def draw_series(chart: SeriesChart, zone: tzinfo) -> Drawing:
    chart = widen(chart)
    is_sparse = all(slot.runs < LEAST_TRIALS for slot in chart.slots)
    least = FEW_TRIALS if is_sparse else LEAST_TRIALS
    points = [_point(chart, index, least) for index in range(len(chart.slots))]
    y = share_axis(chart, points)
    runs = list(_runs(chart, points))
    flags, unshown = flags_of(chart)
    usual, onset = chart.baseline, chart.onset
    return Drawing(
        chart=chart,
        points=points,
        line="".join(_line(chart, run, y) for run in runs if len(run) > 1),
        dots="".join(f"{_line(chart, run, y)}h0" for run in runs if len(run) == 1),
        band="".join(_band(chart, run, y) for run in runs),
        shares=list(y.ticks()),
        times=list(x_ticks(chart, zone)),
        baseline_y=y.position(usual[0]) if usual else None,
        baseline_box=_box(y.position(usual[2]), y.position(usual[1])) if usual else None,
        onset_x=x_of(chart, onset.at) if onset else None,
        onset_box=_box(x_of(chart, onset.low), x_of(chart, onset.high)) if onset else None,
        flags=flags,
        numbers=list(number_flags(flags)),
        unshown_marks=unshown,
        unfinished=unfinished_box(chart),
        text=describe_series(chart, points),
    )


def flags_of(chart: OverTime) -> tuple[list[Flag], int]:
    """Return the latest marks within a chart, numbered from the left, and how many are left out."""
    marks = [mark for mark in chart.marks if chart.since <= mark.at < chart.until]
    shown = enumerate(marks[-MOST_MARKS:], start=1)
    flags = [Flag(x_of(chart, mark.at), number, mark) for number, mark in shown]
    return flags, len(marks) - len(flags)


def share_axis(chart: SeriesChart, points: Sequence[Point]) -> Scale:
    """Choose the axis up to the smallest round top that holds every interval and the baseline."""
    usual = [chart.baseline[0]] if chart.baseline else []
    top = smallest(TOPS, [*usual, *(point.high for point in points if point.high is not None)])
    return Scale(0.0, top, chart.height, 0.0)


def describe_series(chart: SeriesChart, points: Sequence[Point]) -> str:
    """Say what the curve shows, for readers who do not see it; times are in UTC."""
    known = [point for point in points if point.high is not None]
    if not known:
        few = f"fewer than {FEW_TRIALS} {chart.noun}s per bucket"
        is_seen = any(point.trials for point in points)
        return f"{chart.title}: {few if is_seen else f'no {chart.noun} in this time'}"
    peak = max(known, key=lambda point: point.share or 0.0)
    last = known[-1]
    parts = [
        f"{chart.title}: highest {percent(peak.share)} of"
        f" {plural(peak.trials, chart.noun)} at {_written(peak.at)}",
        f"latest {percent(last.share)} of {plural(last.trials, chart.noun)}",
    ]
    if chart.baseline:
        parts.append(f"baseline {percent(chart.baseline[0])}")
    if chart.onset:
        parts.append(f"degrading since {_written(chart.onset.at)}")
    return ", ".join(parts)


def _written(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def unfinished_box(chart: OverTime) -> tuple[float, float] | None:
    """Return begin and width of the last slot while it is not over."""
    last = chart.until - chart.width
    return _box(x_of(chart, last), WIDTH) if is_open(chart, last) else None


def is_open(chart: OverTime, begin: datetime) -> bool:
    """Whether the slot that begins then was not over when it was counted."""
    return chart.as_of is not None and begin + chart.width > chart.as_of


def _point(chart: SeriesChart, index: int, least: int) -> Point:
    slot, at = chart.slots[index], chart.since + index * chart.width
    if slot.runs < least:
        return Point(at, slot.runs, slot.degraded, slot.share if slot.runs else None, None, None)
    low, high = wilson_interval(slot.degraded, slot.runs)
    return Point(at, slot.runs, slot.degraded, slot.share, low, high)


def _runs(chart: SeriesChart, points: Sequence[Point]) -> Iterator[list[Point]]:
    """Return stretches of slots without a gap, and the slot that is not over by itself."""
    known = [(point.high is not None, is_open(chart, point.at)) for point in points]
    for (is_known, _), group in groupby(zip(known, points, strict=True), key=itemgetter(0)):
        if is_known:
            yield [point for _, point in group]


def x_of(chart: OverTime, at: datetime) -> float:
    return round(share_of(at, chart.since, chart.until) * WIDTH, 1)


def _place(x: float, figure: float | None, y: Scale) -> str:
    return f"{x} {y.position(figure or 0.0)}"


def _middle(chart: SeriesChart, point: Point) -> float:
    return x_of(chart, point.at + chart.width / 2)


def _line(chart: SeriesChart, run: Sequence[Point], y: Scale) -> str:
    """Draw the shares of a stretch; of a single slot a dot, as a line needs two."""
    return "M" + "L".join(_place(_middle(chart, point), point.share, y) for point in run)


def _band(chart: SeriesChart, run: Sequence[Point], y: Scale) -> str:
    """Draw the interval of a stretch, as wide as its slots at both ends."""
    begin, end = x_of(chart, run[0].at), x_of(chart, run[-1].at + chart.width)
    path = [
        _place(begin, run[0].high, y),
        *(_place(_middle(chart, point), point.high, y) for point in run),
        _place(end, run[-1].high, y),
        _place(end, run[-1].low, y),
        *(_place(_middle(chart, point), point.low, y) for point in reversed(run)),
        _place(begin, run[0].low, y),
    ]
    return "M" + "L".join(path) + "Z"


def x_ticks(chart: OverTime, zone: tzinfo) -> Iterator[Tick]:
    """Return round hours or days of a zone, labelled in it."""
    span = chart.until - chart.since
    step = next((step for step in STEPS if span / step <= MOST_TICKS), STEPS[-1])
    # On the clock on the wall, read as if it were UTC: when it is put forward or back, the
    # hours that follow are round, too. An hour that is left out is the one after it.
    wall = ceil(chart.since.astimezone(zone).replace(tzinfo=UTC), step)
    ticked = chart.since - step
    while (at := wall.replace(tzinfo=zone).astimezone(UTC)) <= chart.until:
        if at >= chart.since and at > ticked:
            ticked = at
            local = at.astimezone(zone)
            label = f"{local:%-d %b}" if step >= timedelta(days=1) else f"{local:%H:%M}"
            yield Tick(round(x_of(chart, at) / WIDTH * 100, 2), label, at)
        wall += step


def _box(begin: float, end: float) -> tuple[float, float]:
    """Return one edge of a range and its extent, which is never nothing."""
    return begin, round(max(end - begin, 1.0), 1)

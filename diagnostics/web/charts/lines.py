"""Figures over time: lines on one axis from 0, such as p50 and p95 of a latency.

Laid out like the shares of `diagnostics.web.charts.series`: slots without a figure are gaps, and
so is the last one until it is over.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import groupby
from math import floor, log10

from diagnostics.figures import DASH
from diagnostics.web.charts import series
from diagnostics.web.charts.scales import Scale, Tick

HEIGHT = 140
STEPS = (1.0, 2.0, 4.0, 10.0)


@dataclass(frozen=True, slots=True)
class Line:
    """One figure in every slot, None where there is none."""

    label: str
    figures: Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart(series.OverTime):
    """Lines; `write` writes a figure, `unit` names it for the zoomed chart (ms, tokens, usd)."""

    lines: Sequence[Line]
    unit: str
    write: Callable[[float], str]

    @property
    def count(self) -> int:
        return len(self.lines[0].figures)

    @property
    def labels(self) -> str:
        return "|".join(line.label for line in self.lines)


@dataclass(frozen=True, slots=True)
class LineDrawing:
    """Places of everything, in the units of a box of 1000 by 140."""

    chart: LineChart
    paths: Sequence[tuple[str, str, str]]
    """Label, line and dots of each."""
    rows: Sequence[tuple[datetime, Sequence[str]]]
    values: str
    """The figures of each line, for the zoomed chart."""
    ticks: Sequence[Tick]
    times: Sequence[Tick]
    flags: Sequence[series.Flag]
    numbers: Sequence[Tick]
    unfinished: tuple[float, float] | None
    text: str
    width: int = series.WIDTH
    height: int = HEIGHT


def draw_lines(chart: LineChart, zone: tzinfo) -> LineDrawing:
    y = figure_axis(chart)
    flags, _ = series.flags_of(chart)
    return LineDrawing(
        chart=chart,
        paths=[_path(chart, line, y) for line in chart.lines],
        rows=list(_rows(chart)),
        values="|".join(
            ",".join("" if figure is None else f"{figure:.6g}" for figure in line.figures)
            for line in chart.lines
        ),
        ticks=[Tick(y.position(figure), chart.write(figure)) for figure in y.quarters()[::2]],
        times=list(series.x_ticks(chart, zone)),
        flags=flags,
        numbers=list(series.number_flags(flags)),
        unfinished=series.unfinished_box(chart),
        text=describe_lines(chart),
    )


def figure_axis(chart: LineChart) -> Scale:
    """Choose the axis up to the smallest round top that holds every value."""
    highest = max((value for line in chart.lines for value in line.figures if value), default=1.0)
    unit = 10.0 ** floor(log10(highest))
    top = next(step * unit for step in STEPS if highest <= step * unit * 1.000001)
    return Scale(0.0, top, HEIGHT, 0.0)


def describe_lines(chart: LineChart) -> str:
    """Say what the lines show, for readers who do not see them."""
    parts = []
    for line in chart.lines:
        known = [figure for _, figure in _drawn(chart, line) if figure is not None]
        if known:
            parts.append(
                f"{line.label} highest {chart.write(max(known))}, latest {chart.write(known[-1])}"
            )
    return f"{chart.title}: {'; '.join(parts) or 'no figures in this time'}"


def _path(chart: LineChart, line: Line, y: Scale) -> tuple[str, str, str]:
    runs = list(_runs(chart, line, y))
    drawn = "".join(f"M{'L'.join(run)}" for run in runs if len(run) > 1)
    return line.label, drawn, "".join(f"M{run[0]}h0" for run in runs if len(run) == 1)


def _drawn(chart: LineChart, line: Line) -> Iterator[tuple[datetime, float | None]]:
    """Yield the begin and figure of each slot; None for the one that is not over."""
    for place, figure in enumerate(line.figures):
        at = chart.since + place * chart.width
        yield at, None if series.is_open(chart, at) else figure


def _runs(chart: LineChart, line: Line, y: Scale) -> Iterator[list[str]]:
    for is_known, group in groupby(_drawn(chart, line), key=lambda slot: slot[1] is not None):
        if is_known:
            yield [
                f"{series.x_of(chart, at + chart.width / 2)} {y.position(figure or 0.0)}"
                for at, figure in group
            ]


def _rows(chart: LineChart) -> Iterator[tuple[datetime, list[str]]]:
    for place in range(chart.count):
        figures = (line.figures[place] for line in chart.lines)
        cells = [DASH if figure is None else chart.write(figure) for figure in figures]
        yield chart.since + place * chart.width, cells

"""Figures over time as lines: gaps, the axis, and what is said of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from diagnostics.figures import DASH
from diagnostics.web.charts.lines import Line, LineChart, draw_lines, figure_axis

SINCE = datetime(2026, 11, 21, 8, tzinfo=UTC)


def chart_of(*lines: tuple[float | None, ...]) -> LineChart:
    def write(figure: float) -> str:
        return f"{figure:g} ms"

    named = [Line(f"p{n}", figures) for n, figures in enumerate(lines)]
    as_of = SINCE + timedelta(days=1)
    return LineChart(
        name="latency",
        title="Latency",
        since=SINCE,
        width=timedelta(hours=1),
        as_of=as_of,
        lines=named,
        unit="ms",
        write=write,
    )


def test_a_line_ends_before_a_gap_and_a_single_slot_is_a_dot() -> None:
    drawn = draw_lines(chart_of((100.0, 200.0, None, 400.0)), UTC)
    ((label, line, dots),) = drawn.paths
    assert label == "p0"
    assert line.count("M") == 1
    assert line.count("L") == 1
    assert dots == "M875.0 0.0h0"


@pytest.mark.parametrize(
    ("highest", "top"),
    [(0.02, 0.02), (0.9, 1.0), (1.0, 1.0), (1.1, 2.0), (3.0, 4.0), (41.0, 100.0)],
)
def test_the_axis_ends_at_the_next_round_figure(highest: float, top: float) -> None:
    assert figure_axis(chart_of((highest, None))).high == pytest.approx(top)


def test_nothing_known_is_said_and_draws_nothing() -> None:
    drawn = draw_lines(chart_of((None, None)), UTC)
    assert drawn.paths[0][1:] == ("", "")
    assert drawn.text == "Latency: no figures in this time"


def test_a_slot_that_is_not_over_is_marked_and_left_out_of_the_line() -> None:
    chart = chart_of((100.0, 200.0, 9.0))
    chart = replace(chart, as_of=chart.until - timedelta(minutes=1))
    drawn = draw_lines(chart, UTC)
    assert drawn.unfinished == (666.7, 333.3)
    assert drawn.paths[0][1].count("L") == 1
    assert drawn.text.endswith("latest 200 ms")
    assert drawn.values == "100,200,9"


def test_table_and_zoom_have_the_same_figures() -> None:
    drawn = draw_lines(chart_of((100.0, None), (2_500.5, 3.0)), UTC)
    assert drawn.values == "100,|2500.5,3"
    assert [cells for _, cells in drawn.rows] == [["100 ms", "2500.5 ms"], [DASH, "3 ms"]]
    assert (
        drawn.text == "Latency: p0 highest 100 ms, latest 100 ms; p1 highest 2500.5 ms, latest 3 ms"
    )

"""Drawings as template tags; their geometry is `diagnostics.web.charts`."""

from collections.abc import Mapping, Sequence

from django import template

from diagnostics.store.windows import RunBucket
from diagnostics.web.charts.bars import columns as lay_out_columns
from diagnostics.web.charts.bars import shares as lay_out_shares
from diagnostics.web.charts.bars import sparkline as lay_out_sparkline
from diagnostics.web.charts.bars import strip as lay_out_strip
from diagnostics.web.charts.cusum import draw_sums
from diagnostics.web.charts.evaluations import EvaluationMark, lay_out_looks
from diagnostics.web.charts.intervals import DifferenceScale, RateScale
from diagnostics.web.charts.intervals import difference_bar as lay_out_difference
from diagnostics.web.charts.intervals import interval_bar as lay_out_interval
from diagnostics.web.charts.marks import Tone, shape_of
from diagnostics.web.charts.plan_graph import BOX_HEIGHT, BOX_WIDTH, GraphStep
from diagnostics.web.charts.plan_graph import plan_graph as lay_out_graph
from diagnostics.web.charts.series import SeriesChart, draw_series

register = template.Library()


@register.inclusion_tag("charts/_mark.html")
def mark(tone: str) -> dict[str, object]:
    """Draw the shape of a tone; the word must stand beside it."""
    return {"path": shape_of(tone)}


@register.inclusion_tag("charts/_state.html")
def state(tone: str, label: str) -> dict[str, object]:
    """Draw a state: shape and word in the colour of the tone."""
    return {"path": shape_of(tone), "tone": tone, "label": label}


@register.inclusion_tag("charts/_badge.html")
def badge(tone: str, label: str) -> dict[str, object]:
    """Draw a state as a badge."""
    return {"path": shape_of(tone), "tone": tone, "label": label}


@register.inclusion_tag("charts/_interval.html")
def interval_bar(
    scale: RateScale,
    tone: str,
    rate: float,
    low: float,
    high: float,
    baseline: float | None,
    word: str = "degraded",
) -> dict[str, object]:
    """Draw a rate with its 95 % interval and baseline on the common axis."""
    return {
        "bar": lay_out_interval(scale, rate, low, high, baseline, word),
        "tone": tone,
        "width": scale.right + scale.left,
    }


@register.inclusion_tag("charts/_difference.html")
def difference_bar(
    scale: DifferenceScale, tone: str, difference: float, low: float, high: float
) -> dict[str, object]:
    """Draw a difference of rates with its 95 % interval around zero."""
    bar = lay_out_difference(scale, difference, low, high)
    return {"bar": bar, "tone": tone, "width": scale.width}


@register.inclusion_tag("charts/_axis.html")
def difference_axis(scale: DifferenceScale) -> dict[str, object]:
    """Draw the labels of the axis of differences, in points."""
    return {"ticks": scale.ticks(), "width": scale.width}


@register.inclusion_tag("charts/_axis.html")
def rate_axis(scale: RateScale) -> dict[str, object]:
    """Draw the labels of the common axis, in percent."""
    return {"ticks": scale.ticks(), "width": scale.right + scale.left}


@register.inclusion_tag("charts/_sparkline.html")
def sparkline(
    buckets: Sequence[RunBucket],
    baseline: float | None,
    top: float,
    hours: int,
    hot_from: int | None = None,
    ticks: Sequence[float] = (),
) -> dict[str, object]:
    """Draw the degraded share over time, with marks at these shares of it."""
    drawn = lay_out_sparkline(buckets, baseline, top, hours, hot_from, ticks=ticks)
    return {"spark": drawn}


@register.inclusion_tag("charts/_columns.html")
def columns(counts: Sequence[int], hours: float) -> dict[str, object]:
    """Draw how often something was seen over time."""
    return {"drawn": lay_out_columns(counts, hours)}


@register.inclusion_tag("charts/_shares.html")
def shares(counts: Mapping[str, int]) -> dict[str, object]:
    """Draw one bar that is divided among a few names; they must stand beside it."""
    return {"drawn": lay_out_shares(counts)}


@register.inclusion_tag("charts/_series.html")
def series_chart(chart: SeriesChart) -> dict[str, object]:
    """Draw a share over time, with a table beside it; a reader may ask to zoom."""
    return {"drawing": draw_series(chart)}


@register.inclusion_tag("charts/_strip.html")
def strip(attempts: Sequence[tuple[Tone, str]]) -> dict[str, object]:
    """Draw one cell per attempt, given as (tone, label)."""
    return {"strip": lay_out_strip(attempts)}


@register.inclusion_tag("charts/_looks.html")
def looks(found: Sequence[EvaluationMark]) -> dict[str, object]:
    """Draw what the latest looks of a rule found, the newest at the right."""
    return {"looks": lay_out_looks(found)}


@register.inclusion_tag("charts/_plan_graph.html")
def plan_graph(steps: Sequence[GraphStep]) -> dict[str, object]:
    """Draw the steps of a plan and what they depend on."""
    return {
        "graph": lay_out_graph(steps),
        "box_width": BOX_WIDTH,
        "box_height": BOX_HEIGHT,
    }


@register.inclusion_tag("charts/_sums.html")
def sum_strip(chart: SeriesChart) -> dict[str, object]:
    """Draw the sum behind an alarm below a chart, with its alarm and last zero."""
    return {"sums": draw_sums(chart)}

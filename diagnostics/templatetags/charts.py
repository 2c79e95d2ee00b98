"""Drawings as template tags; their geometry is `diagnostics.web.charts`."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import get_current_timezone

from diagnostics.web.charts import bars, evidence, intervals, plan_graph, series, strips
from diagnostics.web.charts.marks import shape_of

register = template.Library()

MARK = '<svg class="mark" width="10" height="10" viewBox="0 0 10 10" aria-hidden="true"><path d="{}"/></svg>'  # noqa: E501


def _series_chart(chart: series.SeriesChart) -> series.Drawing:
    return series.draw_series(chart, get_current_timezone())


DRAWINGS: Mapping[str, tuple[Callable[..., object], str]] = {
    "interval_bar": (intervals.interval_bar, "interval"),
    "difference_bar": (intervals.difference_bar, "interval"),
    "axis": (lambda scale: scale, "axis"),
    "sparkline": (bars.sparkline, "bars"),
    "columns": (bars.columns, "bars"),
    "shares": (bars.shares, "shares"),
    "series_chart": (_series_chart, "series"),
    "small_chart": (_series_chart, "small"),
    "evidence_strip": (evidence.draw_evidence, "evidence"),
    "strip": (strips.strip, "strip"),
    "looks": (strips.evaluation_strip, "strip"),
    "plan_graph": (plan_graph.plan_graph, "plan_graph"),
}
"""Each tag with what lays it out, of the same arguments, and what draws it."""


def _drawing(lay_out: Callable[..., object]) -> Callable[..., Mapping[str, object]]:
    @wraps(lay_out)
    def draw(*args: Any, **kwargs: Any) -> Mapping[str, object]:  # noqa: ANN401 - of the template
        return {"drawn": lay_out(*args, **kwargs)}

    return draw


for _name, (_lay_out, _template) in DRAWINGS.items():
    register.inclusion_tag(f"charts/_{_template}.html", name=_name)(_drawing(_lay_out))


@register.simple_tag
def mark(tone: str) -> SafeString:
    """Draw the shape of a tone; the word must stand beside it."""
    return format_html(MARK, shape_of(tone))


@register.simple_tag
def state(tone: str, label: str) -> SafeString:
    """Draw a state: shape and word in the colour of the tone."""
    return format_html('<span class="state {}">{}{}</span>', tone, mark(tone), label)


@register.simple_tag
def badge(tone: str, label: str) -> SafeString:
    """Draw a state as a badge."""
    return format_html('<span class="badge {}">{}{}</span>', tone, mark(tone), label)

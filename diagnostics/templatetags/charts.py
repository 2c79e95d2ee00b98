"""Drawings as template tags; their geometry is `diagnostics.web.charts`."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import get_current_timezone

from diagnostics.figures import percent, points
from diagnostics.queries.matrix import Excess
from diagnostics.web.charts import bars, plan_graph, series, shape_of, strips

register = template.Library()

# Written here and not by templates: a table has hundreds of these.
INTERVAL = (
    '<svg class="ci {}" width="{}" height="20" role="img" aria-label="{}">'
    '<path class="grid" d="{}"/><rect class="range" x="{}" y="6" width="{}" height="8" rx="2"/>{}'
    '<circle class="dot" cx="{}" cy="10" r="4"/></svg>'
)
BARS = (
    '<svg class="spark{}" width="{}" height="{}" viewBox="0 0 {} {}" preserveAspectRatio="none"'
    ' role="img" aria-label="{}">{}{}{}{}{}</svg>'
)
NOTHING = '<span class="dim">·</span>'
UNDER = '<small class="under">{}</small>'
CELL = '<td class="num {}{}" data-label="{}">{}{}</td>'
MARK = '<svg class="mark" width="10" height="10" viewBox="0 0 10 10" aria-hidden="true"><path d="{}"/></svg>'  # noqa: E501


def _series_chart(chart: series.SeriesChart) -> series.Drawing:
    return series.draw_series(chart, get_current_timezone())


def _path(style: str, path: str) -> SafeString | str:
    return format_html('<path class="{}" d="{}"/>', style, path) if path else ""


def _interval(drawn: bars.IntervalBar) -> SafeString:
    base = _path("base", f"M{drawn.base_x} 2v16" if drawn.base_x is not None else "")
    places = drawn.low_x, drawn.range_width, base, drawn.x
    return format_html(INTERVAL, drawn.tone, drawn.width, drawn.text, drawn.grid, *places)


def _bars(drawn: bars.Bars) -> SafeString:
    wide, high, y = drawn.width, drawn.height, drawn.baseline_y
    style, ground = (" columns", f"M0 {high}h{wide}") if drawn.is_grounded else ("", "")
    shown = {"ground": ground, "bars": drawn.bars, "hot": drawn.hot}
    shown |= {"base": "" if y is None else f"M0 {y}h{wide}", "tick": drawn.ticks}
    paths = (_path(name, path) for name, path in shown.items())
    return format_html(BARS, style, wide, high, wide, high, drawn.text, *paths)


DRAWINGS: Mapping[str, tuple[Callable[..., object], str | Callable[[Any], SafeString]]] = {
    "interval_bar": (bars.interval_bar, _interval),
    "difference_bar": (bars.difference_bar, _interval),
    "axis": (lambda scale: scale, "axis"),
    "sparkline": (bars.sparkline, _bars),
    "columns": (bars.columns, _bars),
    "shares": (bars.shares, "shares"),
    "series_chart": (_series_chart, "series"),
    "small_chart": (_series_chart, "small"),
    "evidence_strip": (strips.draw_evidence, "evidence"),
    "strip": (strips.strip, "strip"),
    "looks": (strips.evaluation_strip, "strip"),
    "plan_graph": (plan_graph.plan_graph, "plan_graph"),
}
"""Each tag with what lays it out, of the same arguments, and what draws it."""


def _drawing(lay_out: Callable[..., object], draw: Callable[[Any], Any]) -> Callable[..., Any]:
    @wraps(lay_out)
    def drawn(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of the template
        return draw(lay_out(*args, **kwargs))

    return drawn


for _name, (_lay_out, _draw) in DRAWINGS.items():
    if isinstance(_draw, str):
        _show = register.inclusion_tag(f"charts/_{_draw}.html", name=_name)
        _show(_drawing(_lay_out, lambda drawn: {"drawn": drawn}))
    else:
        register.simple_tag(_drawing(_lay_out, _draw), name=_name)


@register.simple_tag
def matrix_cell(
    cell: Excess, label: str, url: str | None = None, *, is_sum: bool = False
) -> SafeString:
    """Draw a cell of a matrix: its share, shaded and with its change where that is no chance."""
    change = format_html(UNDER, points(cell.difference)) if cell.level else ""
    if not cell.a.good:
        style, shown = ("", "0") if cell.level else (" none", SafeString(NOTHING))
        return format_html(CELL, cell.shade, style, label, shown, change)
    shown = format_html("<b>{}</b>" if is_sum else "{}", percent(cell.a.share))
    shown = format_html('<a href="{}">{}</a>', url, shown) if url else shown
    return format_html(CELL, cell.shade, "", label, shown, change)


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
    return format_html('<span class="badge {}">{}{}</span>', tone, mark(tone), label)

"""Comparing two filters: is one really worse than the other, and in which way?"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from diagnostics import clock
from diagnostics.analysis.statistics import LEAST_TRIALS
from diagnostics.console.comparison import (
    Against,
    ComparedSide,
    Parts,
    RateDifference,
    Sums,
    add_sums,
    compare,
    parts_of,
    sums_by_version,
)
from diagnostics.console.models_page import failures_url
from diagnostics.queries.call_counts import cost_of, count_calls
from diagnostics.queries.models import sums_between
from diagnostics.selection.selection import ROLLUP_FIELDS, Selection, read_selection
from diagnostics.web.access import ConsoleRequest, member_view
from diagnostics.web.charts.scales import Scale, difference_scale
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import respond

KEPT = ("with", "b", "b_from", "b_to", "matched")
AXIS_WIDTH = 280
PRESETS: Mapping[Against, str] = {
    Against.PERIOD: "the time just before",
    Against.WEEK: "the same time a week before",
    Against.DEPLOY: "before and after the latest deploy",
    Against.SAME: "the same time, other filters",
    Against.CUSTOM: "another time",
}


@require_safe
@member_view
def compare_page(request: ConsoleRequest) -> HttpResponse:
    """Show two filters side by side."""
    selection = read_filters(request)
    other = read_other(request, selection)
    against = _against(request.GET.get("with", ""))
    is_matched = request.GET.get("matched") == "on"
    parts = parts_of(request.project.pk, selection, other, against, clock.now())
    context = {
        **filter_frame(request, selection, applies=ROLLUP_FIELDS, export=None, kept=KEPT),
        **_story(request.project.pk, parts, is_matched=is_matched),
        "parts": parts,
        "against": against,
        "presets": PRESETS,
        "has_no_deploy": against is Against.DEPLOY and parts.deploy is None,
        "is_matched": is_matched,
        "other": other,
        "asked": {name: request.GET.get(name, "")[:1000] for name in KEPT},
        "carried": _carried(request),
        "unread": _unread(selection, other),
        "failures_a": failures_url(selection),
        "section": "compare",
    }
    return respond(request, "compare/compare", context, "Compare")


def read_other(request: ConsoleRequest, selection: Selection) -> Selection:
    """Read what B is narrowed to: its own query, else the filters of A."""
    asked = {
        "from": request.GET.get("b_from", ""),
        "to": request.GET.get("b_to", ""),
        "q": request.GET.get("b", ""),
    }
    other = read_selection(asked, home=selection.zone)
    if asked["q"].strip():
        return other
    times = {"from": asked["from"], "to": asked["to"]}
    same = {name: value for name, value in request.GET.dict().items() if name not in KEPT}
    return read_selection({**same, **times, "range": ""}, home=selection.zone)


def _story(project_id: int, parts: Parts, *, is_matched: bool) -> Mapping[str, Any]:
    a, b, versions = _sums(project_id, parts, is_matched=is_matched)
    found = compare(count_calls(a), count_calls(b))
    return {
        "found": found,
        "rate_scale": _scale(found.rates),
        "kind_scale": _scale(found.kinds),
        "versions": versions,
        "costs": (cost_of(a), cost_of(b)),
        "least": LEAST_TRIALS,
        "kinds": found.kinds,
        "is_empty": not any(one.a.trials or one.b.trials for one in found.rates),
    }


def _sums(project_id: int, parts: Parts, *, is_matched: bool) -> tuple[Sums, Sums, int | None]:
    if not is_matched:
        return _all_of(project_id, parts.a), _all_of(project_id, parts.b), None
    a, b = (sums_by_version(project_id, part) for part in (parts.a, parts.b))
    both = [key for key in a if key in b and count_calls(a[key]).calls]
    both = [key for key in both if count_calls(b[key]).calls]
    return (add_sums([a[key] for key in both]), add_sums([b[key] for key in both]), len(both))


def _all_of(project_id: int, part: ComparedSide) -> Sums:
    return sums_between(project_id, part.window, part.terms)


def _scale(found: Sequence[RateDifference]) -> Scale:
    drawn = [one for one in found if one.is_enough]
    bounds = (bound for one in drawn for bound in (one.low, one.high))
    return difference_scale(bounds, AXIS_WIDTH)


def _against(text: str) -> Against:
    return Against(text) if text in set(Against) else Against.PERIOD


def _carried(request: ConsoleRequest) -> list[tuple[str, str]]:
    """Return the filters of A, so that the form of B keeps them."""
    asked = request.GET.dict()
    return [(name, value) for name, value in asked.items() if name not in KEPT]


def _unread(*selections: Selection) -> list[str]:
    found = [
        term.field
        for selection in selections
        for term in selection.terms
        if term not in selection.rollup_terms
    ]
    return list(dict.fromkeys(found))

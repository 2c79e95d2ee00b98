"""A kind of failure: what, where, since when, how bad, and what to change."""

from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from agents.views.failure_patterns import patterns_of
from agents.views.failure_tabs import TABS, read_tab
from diagnostics import clock
from diagnostics.core.cursors import BadCursorError
from diagnostics.core.failure_words import MEANINGS, STATES, title_of
from diagnostics.core.group_advice import Seen, advise_group
from diagnostics.core.places import summarise
from diagnostics.core.selection import Selection
from diagnostics.core.statistics import wilson_interval
from diagnostics.groups.counting import GroupQuestion, read_question
from diagnostics.groups.reading import (
    GroupRow,
    Sample,
    group_row,
    neighbours_of,
    samples_of,
)
from diagnostics.groups.shares import calls_by_node, curve_of, places_of
from diagnostics.models import FailureGroup
from diagnostics.views.access import ConsoleRequest, may_act, member_view
from diagnostics.views.failure_chart import chart_of
from diagnostics.views.failure_samples import shown_sample
from diagnostics.views.failures import failure_url
from diagnostics.views.filtering import filter_frame, read_filters
from diagnostics.views.pages import respond

SAMPLES = 25
KEPT = ("tab",)
OPEN_PLACES = 3


@require_safe
@member_view
def failure(request: ConsoleRequest, group_id: int) -> HttpResponse:
    """Show one kind of failure; a foreign and an unknown one are both not found."""
    selection = read_filters(request)
    asked, notice = read_question(selection, clock.now())
    row = group_row(request.project.pk, group_id, asked)
    if row is None:
        raise Http404
    samples, older = _samples(request, row.group, asked, selection)
    tab = request.GET.get("tab", "")
    context = {
        **_facts(request, row, asked, samples, selection.query()),
        **_links(request, row, asked, selection),
        **filter_frame(request, selection, kept=KEPT),
        "sample": shown_sample(samples, request.GET.get("sample", "")),
        "samples": samples,
        "older": older,
        "notice": notice,
        "tab": tab if tab in TABS else "samples",
        "tabs": TABS.items(),
        "shown": read_tab(tab, request, row.group, samples, asked),
        "may_act": may_act(request),
        "section": "failures",
    }
    return respond(request, "failures/failure", context)


def _samples(
    request: ConsoleRequest,
    group: FailureGroup,
    asked: GroupQuestion,
    selection: Selection,
) -> tuple[list[Sample], str | None]:
    cursor = request.GET.get("before") or None
    window = (asked.begin, asked.end, SAMPLES)
    try:
        return samples_of(group, *window, cursor, selection)
    except BadCursorError:
        return samples_of(group, *window, None, selection)


def _facts(
    request: ConsoleRequest,
    row: GroupRow,
    asked: GroupQuestion,
    samples: list[Sample],
    query: str,
) -> Mapping[str, Any]:
    project_id, group = request.project.pk, row.group
    places = places_of(project_id, group, asked)
    curve = curve_of(project_id, group, asked)
    calls = calls_by_node(project_id, asked).get(group.node) or None
    seen = [_seen(sample) for sample in samples]
    return {
        "row": row,
        "group": group,
        "title": title_of(group.kind, group.error_type, group.pointer, group.detail),
        "tone": STATES[group.state],
        "meaning": MEANINGS[group.state],
        "calls": calls,
        "rate": min(row.seen / calls, 1.0) if calls else None,
        "repaired": wilson_interval(row.repaired, row.runs) if row.runs else None,
        "places": [place for place in places if place.rows][:OPEN_PLACES],
        "more_places": [place for place in places if place.rows][OPEN_PLACES:],
        "summary": summarise(places),
        "curve": curve,
        "hours": (curve.until - curve.since).total_seconds() / 3600,
        "chart": chart_of(project_id, curve, asked.terms, query),
        "advice": advise_group(group.kind, group.error_type, seen, places),
        "patterns": patterns_of(project_id, group),
    }


def _links(
    request: ConsoleRequest,
    row: GroupRow,
    asked: GroupQuestion,
    selection: Selection,
) -> Mapping[str, Any]:
    query = selection.query()
    before, after = neighbours_of(request.project.pk, row.group.pk, asked)
    return {
        "query": query,
        "before": failure_url(before, query) if before else None,
        "after": failure_url(after, query) if after else None,
    }


def _seen(sample: Sample) -> Seen:
    event, payload = sample
    return Seen(
        event.output_tokens,
        payload.max_output_tokens,
        payload.tool,
        payload.attributes,
        payload.validation_errors,
    )

"""The Now page: which model degrades, since when, how badly, and what to change (S0-57)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from diagnostics import clock
from diagnostics.core.call_counts import kind_filter
from diagnostics.core.charts.mark import Tone
from diagnostics.core.failure_words import STATES, title_of
from diagnostics.core.marks import place_of
from diagnostics.core.now_words import beside, tone_of
from diagnostics.core.selection import Selection
from diagnostics.core.standing import axis_of
from diagnostics.groups.counting import GroupQuestion
from diagnostics.groups.reading import GroupRow, groups_of
from diagnostics.queries.events import series_rows
from diagnostics.queries.marks import marks_between
from diagnostics.queries.trends import SeriesKey, kinds, latest_degraded, recent_trends
from diagnostics.verdicts.recent import kept_verdict_of
from diagnostics.views.access import ConsoleRequest, may_act, member_view
from diagnostics.views.filtering import filter_frame, read_filters
from diagnostics.views.now_lines import (
    is_hit,
    lines_of,
    scale_of,
    trend_top,
)
from diagnostics.views.now_verdict import panel
from diagnostics.views.pages import respond

ROWS = 20
LATEST = 10
FRESH = 5
TOP_KINDS = 6
MOST_TICKS = 12


@require_safe
@member_view
def now(request: ConsoleRequest) -> HttpResponse:
    """Show the sentence, the series worst first, the latest ends and the kinds."""
    selection = read_filters(request)
    context = now_context(request.project.pk, selection, clock.now())
    shown = {
        "section": "now",
        "base_url": request.build_absolute_uri("/").rstrip("/"),
        "may_act": may_act(request),
        **filter_frame(request, selection),
    }
    return respond(request, "console/now", {**context, **shown})


def now_context(project_id: int, selection: Selection, now: datetime) -> Mapping[str, Any]:
    """Read everything the Now page shows; the number of queries does not grow."""
    since, until = selection.window(now)
    axis = axis_of(since, until)
    versions = selection.version_terms
    curves = recent_trends(project_id, axis.since, axis.until, axis.count, versions, now)
    asked = selection.rollup_terms
    rows = series_rows(project_id, since, until, terms=asked)
    found = _kept(kinds(project_id, since, until, versions), selection)
    judged, verdict = kept_verdict_of(project_id, selection, now)
    lines = lines_of(rows, curves, found, selection, axis, verdict)
    marks = marks_between(project_id, axis.since, axis.until, selection.terms)[-MOST_TICKS:]
    subjects = [line.subject for line in lines if line.subject.runs]
    hit = [ln.subject for ln in lines if is_hit(ln.row, verdict) and ln.tone != "good"]
    return {
        "verdict": verdict,
        "tone": tone_of(verdict.state, subjects),
        "beside": beside(subjects, hit),
        **panel(project_id, selection, verdict),
        "lines": lines[:ROWS],
        "left_out": max(len(lines) - ROWS, 0),
        "scale": scale_of(lines[:ROWS]),
        "trend_top": trend_top(lines[:ROWS]),
        "trend_hours": round(axis.span.total_seconds() / 3600),
        "ticks": [place_of(mark, axis.since, axis.span, 1000) / 1000 for mark in marks],
        "kinds": _top_kinds(found, selection),
        "fresh": _fresh(project_id, selection, since, until),
        "latest": latest_degraded(project_id, selection, until, LATEST),
        "is_empty": not rows and not curves and not selection.terms,
        "checked": judged,
        "selection": selection,
    }


def _kept(
    found: Mapping[SeriesKey, Counter[str]], selection: Selection
) -> Mapping[SeriesKey, Counter[str]]:
    return {k: v for k, v in found.items() if selection.keeps(k._asdict())}


def _fresh(
    project_id: int, selection: Selection, since: datetime, until: datetime
) -> Sequence[tuple[GroupRow, str, Tone]]:
    """Give the groups that are new or came back, with their titles and tones."""
    terms = selection.rollup_terms
    asked = GroupQuestion(since, until, terms, states=("new", "regressed"))
    rows, _ = groups_of(project_id, asked, FRESH)
    return [
        (
            row,
            title_of(
                row.group.kind,
                row.group.error_type,
                row.group.pointer,
                row.group.detail,
            ),
            STATES[row.group.state],
        )
        for row in rows
    ]


def _top_kinds(
    found: Mapping[SeriesKey, Counter[str]], selection: Selection
) -> Sequence[Mapping[str, Any]]:
    total: Counter[str] = sum(found.values(), Counter())
    count = total.total()
    return [
        {
            "kind": kind,
            "seen": seen,
            "share": seen / count,
            "query": selection.narrowed_to(kind=kind_filter(kind)),
        }
        for kind, seen in total.most_common(TOP_KINDS)
    ]

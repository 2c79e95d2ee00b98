"""The Now page: the causes that degrade something, then the models, worst first."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from diagnostics import clock
from diagnostics.alerting.marks import marks_between
from diagnostics.alerting.statuses import StatusSet, read_status
from diagnostics.analysis.series import axis_of
from diagnostics.analysis.status import SeriesState
from diagnostics.console.now_causes import causes_of, title_of_page
from diagnostics.console.now_models import FIRST, NowRow, TableQuestion, read_rows, table_of
from diagnostics.console.now_verdict import rating
from diagnostics.failures.counts import GroupQuestion
from diagnostics.failures.groups import GroupRow, groups_of
from diagnostics.failures.wording import STATES, title_of
from diagnostics.figures import listed
from diagnostics.queries.events import covered_by, window_of
from diagnostics.queries.trends import latest_degraded
from diagnostics.selection.selection import ROLLUP_FIELDS, Selection
from diagnostics.store.windows import TimeWindow
from diagnostics.verdict.verdicts import Verdict
from diagnostics.web.access import ConsoleRequest, member_view
from diagnostics.web.charts.marks import Tone
from diagnostics.web.charts.scales import share_of
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import respond

LATEST, FRESH, MOST_TICKS, MOST_NAMED = 10, 5, 12, 3
ANEW = timedelta(days=7)
"""How long it is told that series are judged by a new detector."""
KEPT = ("sort", "show")
CALM: Mapping[str, Tone] = {"ok": "good", "not_enough_data": "quiet", "degrading": "warn"}


@require_safe
@member_view
def now(request: ConsoleRequest) -> HttpResponse:
    """Show the open incidents, the models, new failures and the latest degraded runs."""
    selection = read_filters(request)
    now = clock.now()
    context = now_context(request.project.pk, selection, now, TableQuestion.read(request.GET))
    frame = filter_frame(
        request, selection, kept=KEPT, applies=ROLLUP_FIELDS, covers=covered_by(selection, now)
    )
    shown = {"section": "now", **context, **frame}
    return respond(request, "console/now", shown, title_of_page(context, context["calm"]))


def now_context(
    project_id: int, selection: Selection, now: datetime, table: TableQuestion = FIRST
) -> Mapping[str, Any]:
    """Read everything the Now page shows; the number of queries does not grow."""
    since, until = selection.window(now)
    axis = axis_of(since, until)
    judged = read_status(project_id, selection, now)
    rows = read_rows(project_id, selection, now, judged, axis)
    marks = marks_between(project_id, axis.since, axis.until, selection.terms)[-MOST_TICKS:]
    causes = causes_of(project_id, selection, judged.verdict, now)
    watched = _names(rows, SeriesState.WATCH)
    return {
        **causes,
        **_calm(judged.verdict, rows, selection),
        "watched": watched,
        # What is said first is the heading of the page.
        "first_heading": "h2,h2" if causes["cards"] else "h1,h2",
        "tone": "warn" if watched else CALM[judged.verdict.state],
        "rating": rating(project_id, selection, causes["suspected"]),
        "lines": rows,
        "table": table_of(rows, selection, table),
        "trend_span": axis.span,
        "trend_hours": round(axis.span.total_seconds() / 3600),
        "ticks": [share_of(mark.at, axis.since, axis.until) for mark in marks],
        "fresh": _fresh(project_id, selection, window_of(selection, now)),
        "latest": latest_degraded(project_id, selection, until, LATEST),
        "is_empty": not rows and not selection.terms,
        "checked": judged.at,
        "left_out": judged.left_out,
        "anew": _anew_since(judged, now),
        "query": selection.query(),
    }


def _anew_since(judged: StatusSet, now: datetime) -> datetime | None:
    """Return when the detector of this release took over, while that is news."""
    times = [one.anew_since for one in judged.series.values() if one.anew_since]
    return max((at for at in times if now - at < ANEW), default=None)


def _calm(verdict: Verdict, rows: Sequence[NowRow], selection: Selection) -> dict[str, Any]:
    """Return what is said where no incident is open."""
    if not rows and not verdict.since and selection.terms:
        return {"calm": f"No run ended in {selection.range_words}.", "calm_reason": ()}
    sentence = verdict.told
    return {"calm": f"{sentence.lead}{sentence.rest}", "calm_reason": sentence.reason}


def _names(rows: Sequence[NowRow], state: SeriesState) -> str:
    names = [f"{row.token} ({row.place})" for row in rows if row.state is state]
    return listed(names, MOST_NAMED) if names else ""


def _fresh(
    project_id: int, selection: Selection, window: TimeWindow
) -> Sequence[tuple[GroupRow, str, Tone]]:
    """Return the failures that are new or regressed, with their titles and tones."""
    hours = window.in_hours
    question = GroupQuestion(
        hours.since, hours.until, selection.rollup_terms, states=("new", "regressed")
    )
    rows, _ = groups_of(project_id, question, FRESH)
    return [
        (
            row,
            title_of(row.group.kind, row.group.error_type, row.group.pointer, row.group.detail),
            STATES[row.group.state],
        )
        for row in rows
    ]

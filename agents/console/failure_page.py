"""A kind of failure: what, where, since when, how bad, and what to change."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.http import Http404, HttpResponse

from agents.console.failure_tabs import TABS, read_tab
from agents.console.moments import fault_spans
from agents.fix_patterns.views import patterns_of
from diagnostics import clock
from diagnostics.alerting.marks import marks_between
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.analysis.status import SeriesOnset
from diagnostics.failures.advice import advise_group
from diagnostics.failures.counts import GroupQuestion, is_of_kinds, read_question
from diagnostics.failures.excerpt import excerpt
from diagnostics.failures.groups import GroupRow, Sample, group_row, neighbours_of, samples_of
from diagnostics.failures.models import FailureGroup
from diagnostics.failures.places import summarise
from diagnostics.failures.shares import FailureCurve, calls_by_node, curve_of, places_of
from diagnostics.failures.views import failure_url, narrowed_to
from diagnostics.failures.wording import MEANINGS, STATES, title_of
from diagnostics.rest.cursors import BadCursorError
from diagnostics.selection.fields import FIELDS
from diagnostics.selection.selection import Selection
from diagnostics.verdict.queries import failure_evidence
from diagnostics.web.access import ConsoleRequest, member_page
from diagnostics.web.charts.series import SeriesChart
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import respond


def chart_of(
    project_id: int, curve: FailureCurve, question: GroupQuestion, query: str, noun: str
) -> SeriesChart | None:
    """Return the chart of a curve; None where calls are not counted."""
    if not any(bucket.runs for bucket in curve.buckets):
        return None
    marks = marks_between(project_id, curve.since, curve.until, question.terms)
    begun = curve.began_at
    return SeriesChart(
        name="failure",
        title=f"Failures as a share of {noun}s",
        since=curve.since,
        width=curve.width,
        slots=curve.buckets,
        as_of=question.end,
        noun=noun,
        failing="failing",
        baseline=curve.usual,
        onset=SeriesOnset(begun, begun, begun + curve.width) if begun else None,
        marks=marks,
        query=query,
    )


def shown_sample(samples: Sequence[Sample], wanted: str) -> Mapping[str, Any] | None:
    """Return the sample of an event id, else the latest, with its neighbours; None without any."""
    if not samples:
        return None
    ids = [str(event.event_id) for event, _ in samples]
    place = ids.index(wanted) if wanted in ids else 0
    event, payload = samples[place]
    text, errors = payload.raw_output_preview, payload.validation_errors
    return {
        "event": event,
        "payload": payload,
        "number": place + 1,
        "newer": ids[place - 1] if place else None,
        "older": ids[place + 1] if place + 1 < len(ids) else None,
        # The lines around the first fault; none where no text is kept.
        "excerpt": excerpt(text, fault_spans(errors)) if text else None,
        "errors": errors,
    }


SAMPLES = 25
KEPT = ("tab",)
OPEN_PLACES = 3


@member_page
def failure(request: ConsoleRequest, group_id: int) -> HttpResponse:
    """Show one kind of failure; a foreign and an unknown one are both not found."""
    selection = read_filters(request)
    now = clock.now()
    question, notice = read_question(selection, now)
    covers = None if notice else selection.covered(question.begin, question.end, now)
    row = group_row(request.project.pk, group_id, question)
    if row is None:
        raise Http404
    samples, older = _samples(request, row.group, question, selection)
    query, tab = selection.query(), request.GET.get("tab", "")
    before, after = neighbours_of(request.project.pk, group_id, question)
    context = {
        **_facts(request, row, question, samples, query),
        "query": query,
        "before": failure_url(before, query) if before else None,
        "after": failure_url(after, query) if after else None,
        **filter_frame(
            request,
            selection,
            applies=_applied(row.group, question),
            about=narrowed_to(selection, row.group),
            kept=KEPT,
            covers=covers,
        ),
        "sample": shown_sample(samples, request.GET.get("sample", "")),
        "samples": samples,
        "older": older,
        "notice": notice,
        "tab": tab if tab in TABS else "samples",
        "tabs": TABS.items(),
        "shown": read_tab(tab, request, row.group, samples, question),
        "section": "failures",
    }
    return respond(request, "failures/failure", context, context["title"])


def _applied(group: FailureGroup, question: GroupQuestion) -> Collection[str] | None:
    """Return what the page applies: its counts are of one failure, whatever kinds are asked for."""
    if is_of_kinds(question.kinds, group.kind, group.error_type):
        return None
    return {*FIELDS, "q"} - {"kind"}


def _samples(
    request: ConsoleRequest, group: FailureGroup, question: GroupQuestion, selection: Selection
) -> tuple[list[Sample], str | None]:
    cursor = request.GET.get("before") or None
    window = (question.begin, question.end, SAMPLES)
    try:
        return samples_of(group, *window, cursor, selection)
    except BadCursorError:
        return samples_of(group, *window, None, selection)


def _facts(
    request: ConsoleRequest,
    row: GroupRow,
    question: GroupQuestion,
    samples: list[Sample],
    query: str,
) -> Mapping[str, Any]:
    project_id, group = request.project.pk, row.group
    places = places_of(project_id, group, question)
    curve = curve_of(project_id, group, question)
    calls = calls_by_node(project_id, question).get(group.node) or None
    evidence = [failure_evidence(event, payload) for event, payload in samples]
    return {
        "row": row,
        "group": group,
        "title": title_of(group.kind, group.error_type, group.pointer, group.detail, group.node),
        "tone": STATES[group.state],
        "meaning": MEANINGS[group.state],
        "calls": calls,
        "rate": calls.share_of(row.seen) if calls else None,
        "repaired": wilson_interval(row.repaired, row.runs) if row.runs else None,
        "places": [place for place in places if place.rows][:OPEN_PLACES],
        "more_places": [place for place in places if place.rows][OPEN_PLACES:],
        "summary": summarise(places),
        "curve": curve,
        "hours": (curve.until - curve.since).total_seconds() / 3600,
        "chart": chart_of(project_id, curve, question, query, calls.noun if calls else "call"),
        "advice": advise_group(group.kind, group.error_type, evidence, places),
        "patterns": patterns_of(project_id, group),
    }

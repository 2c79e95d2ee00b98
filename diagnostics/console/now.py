"""The Now page: the causes that degrade something, then the models, worst first.

The verdict of a selection is there as a task too, and people say whether it was right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from diagnostics import clock
from diagnostics.alerting.incident_charts import marks_between, small_charts
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.rule_models import active_silences
from diagnostics.alerting.states import rank
from diagnostics.alerting.statuses import read_status
from diagnostics.alerting.wording import STATES, name_slices
from diagnostics.analysis.series import SeriesState, axis_of, name_of
from diagnostics.console.now_models import FIRST, NowRow, TableQuestion, read_rows, table_of
from diagnostics.failures.counts import GroupQuestion, latest_groups
from diagnostics.failures.models import FailureGroup
from diagnostics.failures.wording import STATES as GROUP_STATES
from diagnostics.failures.wording import title_of
from diagnostics.figures import Tone, listed, plural, rate_percent
from diagnostics.ingest.models import KeyMinute
from diagnostics.queries.call_counts import kind_filter
from diagnostics.queries.series import covered_by, latest_events, window_of
from diagnostics.selection.selection import ROLLUP_FIELDS, Selection, read_selection
from diagnostics.store.windows import TimeWindow
from diagnostics.verdict.advice import Advice
from diagnostics.verdict.ratings import OUTDATED, mark_of, mark_verdict, sign_verdict
from diagnostics.verdict.verdicts import Verdict, stored_form
from diagnostics.web.charts.scales import share_of
from diagnostics.web.charts.series import SeriesChart
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import ConsoleRequest, member_action, member_page, require_actor, respond
from failsoft.events import EventKind

MOST_CARDS, MOST_OPEN, MOST_NAMED = 3, 50, 3
SILENCE_HOURS = (1, 4, 8, 24)
LATE_SPAN = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CauseCard:
    """An open incident as a card: what, since when, us or them, what to change."""

    incident: Incident
    headline: Sequence[str | datetime]
    why: Sequence[str | datetime]
    chart: SeriesChart
    is_silenced: bool

    @property
    def badge(self) -> tuple[Tone, str]:
        return STATES[self.incident.state]

    @property
    def has_curve(self) -> bool:
        return any(slot.runs for slot in self.chart.slots)

    @property
    def advice(self) -> Sequence[Advice]:
        """What to change, with its evidence; the first is shown, the others are counted."""
        return self.incident.latest_verdict.advice

    @property
    def calls(self) -> str:
        """How many calls failed, where the sentence counts runs; of calls it says both."""
        verdict = self.incident.latest_verdict
        beside = verdict.beside or {}
        said = verdict.share, verdict.runs
        if beside.get("counted") != "calls" or (beside["rate"], beside["count"]) == said:
            return ""
        failed = f"{rate_percent(beside['rate'])} of {plural(beside['count'], 'call')} failed"
        usual = beside["baseline"]
        return f"{failed} (baseline {rate_percent(usual)})" if usual is not None else failed

    @property
    def affected(self) -> str:
        return listed(name_slices(row.slice for row in self.incident.slices.all()), MOST_NAMED)

    @property
    def failures(self) -> str:
        kind = self.incident.latest_verdict.top_kind
        narrowed = read_selection(dict(parse_qsl(self.incident.filter)))
        return narrowed.query_for(**({"kind": kind_filter(kind)} if kind else {}))


def causes_of(
    project_id: int, selection: Selection, verdict: Verdict, now: datetime
) -> Mapping[str, Any]:
    """Return the cards of the open incidents that a selection touches, the gravest first.

    With them the causes of the verdict that have no incident yet; at most eight queries.
    """
    rows = Incident.objects.filter(project_id=project_id, cleared_at__isnull=True)
    latest = rows.select_related("acknowledged_by", "assignee").prefetch_related("slices__rule")
    known = list(latest.order_by("-fired_at", "-pk")[:MOST_OPEN])
    begun = (row for row in known if selection.end is None or row.onset < selection.end)
    kept = sorted((row for row in begun if row.is_kept_by(selection.terms)), key=_place)
    shown = kept[:MOST_CARDS]
    charts = small_charts(project_id, shown, now)
    silences = active_silences(project_id, now) if shown else []
    suspected = [
        cause
        for cause in verdict.causes
        if not any(_is_about(incident, cause, selection) for incident in known)
    ]
    return {
        "cards": [
            CauseCard(
                incident,
                *incident.headline,
                charts[incident.pk],
                incident.is_silenced(now, silences),
            )
            for incident in shown
        ],
        "open_count": len(kept),
        "more": len(kept) - len(shown),
        "suspected": suspected,
        # Why no alert may have fired.
        "late": KeyMinute.count_late(project_id, now - LATE_SPAN) if suspected else 0,
        "hours": SILENCE_HOURS,
    }


def title_of_page(causes: Mapping[str, Any], calm: str) -> str:
    """Return what the title says: how many incidents are open and of what, else the calm line."""
    cards = causes["cards"]
    if not cards:
        return calm
    names = ", ".join(card.incident.title for card in cards)
    return f"{plural(causes['open_count'], 'open incident')}: {names}"


def _place(incident: Incident) -> tuple[int, float, float]:
    """By severity, then by how many failed beyond the baseline, then the latest first."""
    rate = incident.latest_verdict.rate
    excess = (rate.share - (rate.baseline or 0.0)) * rate.n if rate else 0.0
    return -rank(incident.severity), -excess, -incident.fired_at.timestamp()


def _is_about(incident: Incident, cause: Verdict, selection: Selection) -> bool:
    """Whether a cause of the verdict is the one of an incident.

    One that a filter narrows, or that has no cause yet, is known by its series.
    """
    if (incident.cause, incident.cause_value) == (str(cause.finding.cause), cause.finding.value):
        return True
    is_named = incident.latest_verdict.since and not selection.terms
    return not is_named and any(cause.touches(row.slice) for row in incident.slices.all())


LATEST, FRESH, MOST_TICKS = 10, 5, 12
UPGRADE_SHOWN = timedelta(days=7)
"""How long the page says that series are judged by a new detector."""
KEPT = ("sort", "show")


def _tone(verdict: Verdict, rows: Sequence[NowRow]) -> Tone:
    """Return the tone of a verdict; without any baseline nothing is known to be well."""
    is_known = verdict.state != "ok" or any(row.baseline is not None for row in rows)
    return CALM[verdict.state] if is_known else "quiet"


CALM: Mapping[str, Tone] = {"ok": "good", "not_enough_data": "quiet", "degrading": "warn"}


@member_page
def now(request: ConsoleRequest) -> HttpResponse:
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
    watched_rows = [row for row in rows if row.state is SeriesState.WATCH]
    watching = [f"{name_of(*row.key[2:])} ({row.place})" for row in watched_rows]
    watched = listed(watching, MOST_NAMED) if watching else ""
    upgrades = (status.anew_since for status in judged.series.values())
    return {
        **causes,
        **_calm(judged.verdict, rows, selection),
        "watched": watched,
        # What is said first is the heading of the page.
        "first_heading": "h2,h2" if causes["cards"] else "h1,h2",
        "tone": "warn" if watched else _tone(judged.verdict, rows),
        "rating": rating(project_id, selection, causes["suspected"]),
        "lines": rows,
        "table": table_of(rows, selection, table),
        "trend_span": axis.span,
        "trend_hours": round(axis.span.total_seconds() / 3600),
        "ticks": [share_of(mark.at, axis.since, axis.until) for mark in marks],
        "fresh": _fresh(project_id, selection, window_of(selection, now)),
        "latest": latest_events(project_id, [EventKind.DEGRADED], selection, until, LATEST),
        "is_empty": not rows and not selection.terms,
        "checked": judged.at,
        "left_out": judged.left_out,
        # When the detector of this release took over, while that is news.
        "upgraded": max((at for at in upgrades if at and now - at < UPGRADE_SHOWN), default=None),
        "query": selection.query(),
    }


def _calm(verdict: Verdict, rows: Sequence[NowRow], selection: Selection) -> dict[str, Any]:
    """Return what is said where no incident is open."""
    if not rows and not verdict.since and selection.terms:
        return {"calm": f"No run ended in {selection.range_words}.", "calm_reason": ()}
    sentence = verdict.told
    return {"calm": f"{sentence.lead}{sentence.rest}", "calm_reason": sentence.reason}


def _fresh(
    project_id: int, selection: Selection, window: TimeWindow
) -> Sequence[tuple[FailureGroup, int, str, Tone]]:
    hours = window.in_hours
    question = GroupQuestion(
        hours.since, hours.until, selection.rollup_terms, states=("new", "regressed")
    )
    return [
        (
            group,
            seen,
            title_of(group.kind, group.error_type, group.pointer, group.detail),
            GROUP_STATES[group.state],
        )
        for group, seen in latest_groups(project_id, question, FRESH)
    ]


def rating(
    project_id: int, selection: Selection, suspected: Sequence[Verdict]
) -> Mapping[str, Any]:
    if not suspected:
        return {}
    first = suspected[0]
    kind = first.finding.top_kind
    narrowed = {**first.subject, **({"kind": kind_filter(kind)} if kind else {})}
    stored = stored_form(first)
    return {
        "marked": mark_of(project_id, stored),
        "verdict": sign_verdict(project_id, stored),
        "failures": selection.query_for(**narrowed),
    }


@member_action
def mark_now(request: ConsoleRequest) -> HttpResponse:
    """Mark the verdict that was shown for a selection right or wrong."""
    if not mark_verdict(request.project.pk, request.POST, require_actor(request)):
        messages.error(request, OUTDATED)
    selection = read_selection(dict(parse_qsl(request.POST.get("query", ""))))
    return redirect(f"{reverse('now')}?{selection.query()}".rstrip("?"))

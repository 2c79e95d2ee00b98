"""Incidents: the list, and one incident from onset to its end."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.http import HttpResponse
from django.urls import reverse

from diagnostics import clock
from diagnostics.accounts.models import Membership
from diagnostics.alerting.incident_actions import incident_of
from diagnostics.alerting.incident_charts import incident_chart
from diagnostics.alerting.incident_models import Incident, IncidentCause, IncidentSlice, Transition
from diagnostics.alerting.incident_records import (
    MOST_SHOWN,
    evaluations_of,
    incidents_in,
    judged_of,
)
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.rule_models import Evaluation
from diagnostics.alerting.rules import filter_of
from diagnostics.alerting.task_text import answer_task, risen_failures, task_of
from diagnostics.alerting.wording import (
    DELIVERY_WORDS,
    EVALUATIONS,
    STATES,
    TRANSITION_WORDS,
    evaluation_words,
    slice_words,
)
from diagnostics.figures import Tone, duration
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.verdict.ratings import mark_of, sign_verdict
from diagnostics.verdict.verdicts import StoredVerdict
from diagnostics.web.charts.strips import EvaluationMark
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import ConsoleRequest, member_page, respond

IN_UTC = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d) UTC")


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    at: datetime
    tone: Tone
    title: str
    detail: Sequence[str | datetime] = ()
    who: str = ""
    quote: Sequence[str | datetime] = ()


def timeline_of(
    row: Incident, transitions: Sequence[Transition], notifications: Sequence[Notification]
) -> list[TimelineEntry]:
    entries = [*_onsets(row), *(_transition(row, change) for change in transitions)]
    for sent in notifications:
        if sent.reason != Notification.Reason.DIGEST:
            tone, word = DELIVERY_WORDS[sent.state]
            title = f"{sent.get_reason_display()}: {sent.channel.name}, {word}"
            detail = timed(sent.why or sent.last_error or sent.answer)
            entries.append(TimelineEntry(sent.sent_at or sent.created_at, tone, title, detail))
    entries += [
        TimelineEntry(
            note.at,
            "quiet",
            note.get_kind_display(),
            who=note.by.get_username() if note.by else "",
            quote=timed(note.text),
        )
        for note in row.notes.select_related("by").order_by("at", "pk")
    ]
    return sorted(entries, key=lambda entry: entry.at)


def timed(text: str) -> list[str | datetime]:
    """Split a text at the times in UTC that it names, so that a page can show them in a zone."""
    return [
        datetime.strptime(part, "%Y-%m-%d %H:%M").replace(tzinfo=UTC) if place % 2 else part
        for place, part in enumerate(IN_UTC.split(text))
        if part
    ]


def _onsets(row: Incident) -> Iterator[TimelineEntry]:
    """Return the onset of the verdict, and that of the detector where it differs."""
    onset = row.latest_verdict.onset
    if onset is None:
        yield TimelineEntry(row.onset, "bad", "Onset")
        return
    at, low, high = onset
    yield TimelineEntry(at, "bad", "Onset", (low, " to ", high, " (95 %)") if low < high else ())
    if row.onset != at:
        yield TimelineEntry(row.onset, "quiet", "Detector onset", [])


def _transition(row: Incident, change: Transition) -> TimelineEntry:
    """Return a change of state; the first has what was said then if that is something else now."""
    tone, title = TRANSITION_WORDS[change.kind]
    who = change.by.get_username() if change.by else ""
    about = (
        [f"{slice_words(change.slice.slice)} · {change.slice.rule.name}"] if change.slice else []
    )
    then = StoredVerdict.model_validate(row.verdict).told
    is_old = change.kind == Transition.Kind.FIRED and then != row.latest_verdict.told
    quote = [*then.parts, ". ", *then.reason] if then and is_old else ()
    return TimelineEntry(change.at, tone, title, about, who, quote)


HOURS = (1, 4, 8, 24, 72)
SHOWN_SLICES = 3
# A page stays light whatever has happened.
MOST_SLICES, MOST_MOMENTS, MOST_NOTIFICATIONS, SHOWN_EVALUATIONS = 12, 40, 20, 3
MOST_SHARES, MOST_FAILURES = 6, 3


@member_page
def incidents(request: ConsoleRequest) -> HttpResponse:
    selection = read_filters(request)
    now = clock.now()
    since, until = selection.window(now)
    listed = incidents_in(request.project.pk, selection, since, until)
    rows = [_row(row, row.slices.all(), now) for row in listed[:MOST_SHOWN]]
    context = {
        "section": "incidents",
        "open_rows": [row for row in rows if row["incident"].cleared_at is None],
        "past_rows": [row for row in rows if row["incident"].cleared_at is not None],
        "judged": judged_of(request.project.pk, now),
        "is_full": len(listed) > MOST_SHOWN,
        "is_cut": len(listed) > MOST_SHOWN and listed[-1].cleared_at is None,
        "most": MOST_SHOWN,
        "hours": HOURS,
        "longer": selection.query(range="30d"),
        **filter_frame(request, selection, applies=SERIES_FIELDS, export="incidents"),
    }
    return respond(request, "incidents/list", context, "Incidents")


@member_page
def incident(request: ConsoleRequest, number: int) -> HttpResponse:
    row = incident_of(request.project.pk, number)
    return respond(
        request,
        "incidents/incident",
        incident_context(request, row),
        f"Incident {row.pk}: {row.title}",
    )


@member_page
def incident_task(request: ConsoleRequest, number: int) -> HttpResponse:
    row = incident_of(request.project.pk, number)
    path = reverse("incident", args=[row.pk])
    facts = task_of(
        request.project,
        row.latest_verdict,
        _selection(row),
        list(dict.fromkeys(slice_words(row.slice) for row in row.slices.all())),
        row.cleared_at or clock.now(),
        links={"Incident": path},
        title=row.title,
    )
    return answer_task(request, facts, path, f"Incident {row.pk}")


def incident_context(request: ConsoleRequest, row: Incident) -> dict[str, Any]:
    now = clock.now()
    slices = list(row.slices.select_related("rule").order_by("fired_at", "pk"))
    notifications = list(row.notifications.select_related("channel").order_by("pk"))
    changes = list(row.transitions.select_related("by", "slice__rule").order_by("at", "pk"))
    past = evaluations_of(slices, row.cleared_at or now)
    verdict = row.latest_verdict
    headline, why = row.headline
    members = Membership.objects.filter(project=request.project)
    actors = members.exclude(role=Membership.Role.VIEWER)
    return {
        "section": "incidents",
        "incident": row,
        "query": _during(row, row.filter),
        "row": _row(row, slices, now),
        "headline": headline,
        "why": why,
        "ended": _ended(row, changes),
        "rate": verdict.rate,
        "chart": incident_chart(row, now),
        "advice": verdict.advice,
        "excess": verdict.excess[:MOST_SHARES],
        "failures": risen_failures(
            row.project_id, _selection(row), row.began, row.cleared_at or now, MOST_FAILURES
        ),
        "affected": [
            _affected(part, past.get(part.state_id, ()), _during(row, filter_of([part.slice])))
            for part in slices[:MOST_SLICES]
        ],
        "left_out": max(len(slices) - MOST_SLICES, 0),
        "moments": timeline_of(row, changes, notifications)[-MOST_MOMENTS:],
        "notifications": [
            (sent, DELIVERY_WORDS[sent.state]) for sent in notifications[-MOST_NOTIFICATIONS:]
        ],
        "members": actors.order_by("user__username").values_list("user_id", "user__username"),
        "causes": IncidentCause.choices,
        "marked": mark_of(row.project_id, verdict),
        "rated": sign_verdict(row.project_id, verdict),
        "hours": HOURS,
        "is_silenced": row.cleared_at is None and row.is_silenced(now),
        "has_channels": Channel.objects.filter(project=request.project).exists(),
    }


def _during(row: Incident, text: str) -> str:
    """Return a filter for links, with the time of what is over: pages show the latest 24 hours."""
    if row.cleared_at is None:
        return text
    since = min(row.began, row.onset)
    window = urlencode({"from": since.isoformat(), "to": row.cleared_at.isoformat()})
    return f"{text}&{window}" if text else window


def _ended(row: Incident, changes: Sequence[Transition]) -> str:
    """Say how an incident ended, who ended it, and how long it lasted; empty while it does."""
    if row.cleared_at is None:
        return ""
    after = f"after {duration(row.cleared_at - row.began)}"
    manual = [change.by for change in changes if change.kind == Transition.Kind.RESOLVED]
    if manual:
        return f"Resolved by {manual[0].get_username() if manual[0] else 'an API key'} {after}"
    if row.resolution_cause == IncidentCause.NEW_USUAL_LEVEL:
        return f"Resolved {after}: this level is the new baseline"
    return f"Resolved automatically {after}"


def _row(row: Incident, slices: Iterable[IncidentSlice], now: datetime) -> dict[str, Any]:
    cause, since = row.resolution_cause, row.began
    affected = list(dict.fromkeys(slice_words(part.slice) for part in slices))
    says = row.headline[0] if row.latest_verdict.told else affected[:SHOWN_SLICES]
    return {
        "incident": row,
        "affected": affected,
        "badge": STATES[row.state],
        "since": since,
        "lasted": (row.cleared_at or now) - since,
        "cause": IncidentCause(cause).label if cause else "",
        "says": says,
    }


def _affected(row: IncidentSlice, past: Sequence[Evaluation], query: str) -> dict[str, Any]:
    signal, latest = row.rule.signal, past[-1] if past and not row.cleared_at else row
    return {
        "row": row,
        "words": slice_words(row.slice),
        "found": evaluation_words(signal, latest.k, latest.n, latest.value, latest.bound),
        "query": query,
        "looks": [EvaluationMark(*EVALUATIONS[x.verdict], at=f"{x.slot:%H:%M} UTC") for x in past],
        "table": [
            (x, EVALUATIONS[x.verdict], evaluation_words(signal, x.k, x.n, x.value, x.bound))
            for x in past[-SHOWN_EVALUATIONS:][::-1]
        ],
    }


def _selection(row: Incident) -> Selection:
    return read_selection(dict(parse_qsl(row.filter)))

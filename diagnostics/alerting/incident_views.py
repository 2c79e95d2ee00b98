"""Incidents: the list with its noise, and one incident from onset to its end."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from diagnostics import clock
from diagnostics.accounts.models import Membership
from diagnostics.alerting.attribution import since_of
from diagnostics.alerting.incident_actions import incident_of
from diagnostics.alerting.incident_models import Incident, IncidentCause, IncidentSlice
from diagnostics.alerting.incident_records import (
    MOST_SHOWN,
    evaluations_of,
    incidents_in,
    judged_of,
    noise_of,
)
from diagnostics.alerting.incident_rows import is_quiet
from diagnostics.alerting.notification_facts import advice_of, rate_of
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.rule_models import Evaluation
from diagnostics.alerting.task_facts import task_of
from diagnostics.alerting.task_text import TaskFacts, write_task
from diagnostics.alerting.wording import (
    BECAME,
    LOOKS,
    SEVERITIES,
    STATES,
    TOLD,
    look_words,
    slice_words,
)
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.verdict.wording import sentence_of
from diagnostics.web.access import ConsoleRequest, member_view
from diagnostics.web.charts.marks import Tone
from diagnostics.web.charts.strips import EvaluationMark
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import respond

Badge = tuple[Tone, str]
HOURS = (1, 4, 8, 24, 72)
SHOWN_SLICES = 3
# A page stays light whatever has happened.
MOST_SLICES, MOST_MOMENTS, MOST_TOLD, SHOWN_LOOKS = 24, 50, 20, 5


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One entry of the time line."""

    at: datetime
    tone: Tone
    title: str
    detail: str = ""
    who: str = ""
    quote: str = ""


@require_safe
@member_view
def incidents(request: ConsoleRequest) -> HttpResponse:
    """Show what is open, then what was, in the window and under the filters."""
    selection = read_filters(request)
    now = clock.now()
    since, until = selection.window(now)
    found = incidents_in(request.project.pk, selection, since, until)
    rows = [_row(one, one.slices.all(), now) for one in found]
    context = {
        "section": "incidents",
        "open_rows": [row for row in rows if row["incident"].cleared_at is None],
        "past_rows": [row for row in rows if row["incident"].cleared_at is not None],
        "noise": noise_of(request.project.pk, since, until),
        "judged": judged_of(request.project.pk, now),
        "is_full": len(rows) == MOST_SHOWN,
        "most": MOST_SHOWN,
        "longer": selection.query(range="30d"),
        **filter_frame(request, selection, export=None),
    }
    return respond(request, "incidents/list", context, "Incidents")


@require_safe
@member_view
def incident(request: ConsoleRequest, number: int) -> HttpResponse:
    """Show one incident: its verdict, its time line, what it touches, who does what."""
    found = find_incident(request, number)
    return respond(
        request,
        "incidents/incident",
        incident_context(request, found),
        f"Incident {found.pk}: {found.title}",
    )


@require_safe
@member_view
def incident_task(request: ConsoleRequest, number: int) -> HttpResponse:
    """Show the evidence of an incident as a text to copy."""
    row = find_incident(request, number)
    selection = read_selection(dict(parse_qsl(row.filter)))
    path = reverse("incident", args=[row.pk])
    facts = task_of(
        request.project,
        row.latest_verdict,
        selection,
        list(dict.fromkeys(slice_words(one.slice) for one in row.slices.all())),
        row.cleared_at or clock.now(),
        links={"Incident": path},
        title=row.title,
    )
    return answer_task(request, facts, path, f"Incident {row.pk}")


def answer_task(
    request: ConsoleRequest, facts: TaskFacts, back: str, back_label: str
) -> HttpResponse:
    """Return a task as a page to copy from, or as the text alone where that is accepted."""
    text = write_task(facts)
    if request.headers.get("Accept") == "text/plain":
        return HttpResponse(text, content_type="text/plain; charset=utf-8")
    context = {"section": "incidents", "text": text, "back": back, "back_label": back_label}
    return respond(request, "incidents/task", context, "Task")


def find_incident(request: ConsoleRequest, number: int) -> Incident:
    """Return an incident of the reader's project; any other is not there."""
    if (row := incident_of(request.project.pk, number)) is None:
        raise Http404
    return row


def incident_context(request: ConsoleRequest, row: Incident) -> dict[str, Any]:
    """Read everything that the page of an incident shows."""
    now = clock.now()
    slices = list(row.slices.select_related("rule").order_by("fired_at", "pk"))
    told = list(row.notifications.select_related("channel").order_by("pk"))
    looks = evaluations_of(slices, row.cleared_at or now)
    verdict = row.latest_verdict
    return {
        "section": "incidents",
        "incident": row,
        "row": _row(row, slices, now),
        **_told(verdict, row),
        "rate": rate_of(verdict),
        "advice": advice_of(verdict),
        "affected": [_affected(one, looks.get(one.state_id, ())) for one in slices[:MOST_SLICES]],
        "left_out": max(len(slices) - MOST_SLICES, 0),
        "moments": _moments(row, told)[-MOST_MOMENTS:],
        "told": [(one, TOLD[one.state]) for one in told[-MOST_TOLD:]],
        "members": _members(request),
        "causes": IncidentCause.choices,
        "judged": judged_of(row.project_id, now),
        "hours": HOURS,
        "is_quiet": row.cleared_at is None and is_quiet(row, now),
        "has_channels": Channel.objects.filter(project=request.project).exists(),
    }


def _told(verdict: Mapping[str, Any], row: Incident) -> dict[str, Any]:
    """Return what is said now, and what was said when it fired if that is something else."""
    said, then = sentence_of(verdict), sentence_of(row.verdict)
    return {
        "headline": said.parts if said else [row.title.rstrip(".")],
        "why": said.reason if said else (),
        "then": [*then.parts, ". ", *then.reason] if then and then != said else [],
    }


def _row(one: Incident, slices: Iterable[IncidentSlice], now: datetime) -> dict[str, Any]:
    """Return an incident as a line of the list."""
    verdict, cause = one.latest_verdict, one.resolution_cause
    affected = list(dict.fromkeys(slice_words(part.slice) for part in slices))
    told = sentence_of(verdict)
    # By its verdict, which the sentence tells; else by its detector.
    since = since_of(verdict) or one.onset
    return {
        "incident": one,
        "affected": affected,
        "badge": STATES[one.state],
        "severity": SEVERITIES[one.severity],
        "since": since,
        "lasted": (one.cleared_at or now) - since,
        "cause": IncidentCause(cause).label if cause else "",
        "says": told.parts if told else [", ".join(affected[:SHOWN_SLICES])],
    }


def _affected(one: IncidentSlice, looks: Sequence[Evaluation]) -> dict[str, Any]:
    """Return a slice of an incident, with the last looks at it."""
    signal = one.rule.signal
    return {
        "row": one,
        "words": slice_words(one.slice),
        "found": look_words(signal, one.k, one.n, one.value, one.bound),
        "query": query_of(one.slice),
        "looks": [EvaluationMark(*LOOKS[x.verdict], at=f"{x.slot:%H:%M} UTC") for x in looks],
        "table": [
            (look, LOOKS[look.verdict], look_words(signal, look.k, look.n, look.value, look.bound))
            for look in looks[-SHOWN_LOOKS:][::-1]
        ],
    }


def query_of(values: Mapping[str, str | None]) -> str:
    """Write the values of a slice as the query of a page."""
    ordered = {name: values[name] for name in SERIES_FIELDS if name in values}
    return Selection(filters=ordered).query()


def _members(request: ConsoleRequest) -> list[tuple[int, str]]:
    rows = Membership.objects.filter(project=request.project).exclude(role=Membership.Role.VIEWER)
    names = rows.order_by("user__username").values_list("user_id", "user__username")
    return list(names)


def _moments(row: Incident, told: Sequence[Notification]) -> list[TimelineEntry]:
    """Put onset, transitions, notifications and notes into one order."""
    found = _beginnings(row)
    found += [
        TimelineEntry(
            one.at,
            *BECAME[one.kind],
            detail=_about(one.slice),
            who=one.by.get_username() if one.by else "",
        )
        for one in row.transitions.select_related("by", "slice__rule").order_by("at", "pk")
    ]
    found += [_told_moment(one) for one in told if one.reason != "digest"]
    found += [
        TimelineEntry(
            note.at,
            "quiet",
            note.get_kind_display(),
            who=note.by.get_username() if note.by else "",
            quote=note.text,
        )
        for note in row.notes.select_related("by").order_by("at", "pk")
    ]
    return sorted(found, key=lambda one: one.at)


def _beginnings(row: Incident) -> list[TimelineEntry]:
    """Tell when it began; verdict and detector may put it at different times."""
    told = since_of(row.latest_verdict)
    if told is None or told == row.onset:
        return [TimelineEntry(row.onset, "warn", "It began")]
    return [
        TimelineEntry(told, "warn", "It began", "as the verdict puts it"),
        TimelineEntry(row.onset, "quiet", "First sign", "the detector's count left zero"),
    ]


def _about(one: IncidentSlice | None) -> str:
    return f"{slice_words(one.slice)} · {one.rule.name}" if one else ""


def _told_moment(one: Notification) -> TimelineEntry:
    tone, word = TOLD[one.state]
    detail = one.why or one.last_error or one.answer
    title = f"{one.get_reason_display()}: {one.channel.name}, {word}"
    return TimelineEntry(one.sent_at or one.created_at, tone, title, detail)

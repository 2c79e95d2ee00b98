"""The timeline of an incident: onset, transitions, notifications and notes in one order."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from diagnostics.alerting.incident_models import Incident, IncidentSlice, Transition
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.wording import BECAME, TOLD, slice_words
from diagnostics.verdict.wording import onset_of
from diagnostics.web.charts.marks import Tone

IN_UTC = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d) UTC")


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One entry of the timeline; the quote is made of words and times."""

    at: datetime
    tone: Tone
    title: str
    detail: Sequence[str | datetime] = ()
    who: str = ""
    quote: Sequence[str | datetime] = ()


def timeline_of(
    row: Incident, transitions: Sequence[Transition], told: Sequence[Notification]
) -> list[TimelineEntry]:
    """Return the entries of an incident, oldest first."""
    found = [*_onsets(row), *map(_transition, transitions)]
    found += [_notification(one) for one in told if one.reason != "digest"]
    found += [
        TimelineEntry(
            note.at,
            "quiet",
            note.get_kind_display(),
            who=note.by.get_username() if note.by else "",
            quote=timed(note.text),
        )
        for note in row.notes.select_related("by").order_by("at", "pk")
    ]
    return sorted(found, key=lambda one: one.at)


def timed(text: str) -> list[str | datetime]:
    """Split a text at the times in UTC that it names, so that a page can show them in a zone."""
    return [
        datetime.strptime(part, "%Y-%m-%d %H:%M").replace(tzinfo=UTC) if place % 2 else part
        for place, part in enumerate(IN_UTC.split(text))
        if part
    ]


def _onsets(row: Incident) -> Iterator[TimelineEntry]:
    """Return the onset of the verdict, and that of the detector where it differs."""
    onset = onset_of(row.latest_verdict)
    if onset is None:
        yield TimelineEntry(row.onset, "bad", "Onset")
        return
    at, low, high = onset
    yield TimelineEntry(at, "bad", "Onset", (low, " to ", high, " (95 %)") if low < high else ())
    if row.onset != at:
        yield TimelineEntry(row.onset, "quiet", "Detector onset", [])


def _transition(one: Transition) -> TimelineEntry:
    tone, title = BECAME[one.kind]
    who = one.by.get_username() if one.by else ""
    return TimelineEntry(one.at, tone, title, [_about(one.slice)] if one.slice else [], who)


def _about(one: IncidentSlice) -> str:
    return f"{slice_words(one.slice)} · {one.rule.name}"


def _notification(one: Notification) -> TimelineEntry:
    tone, word = TOLD[one.state]
    detail = one.why or one.last_error or one.answer
    title = f"{one.get_reason_display()}: {one.channel.name}, {word}"
    return TimelineEntry(one.sent_at or one.created_at, tone, title, timed(detail))

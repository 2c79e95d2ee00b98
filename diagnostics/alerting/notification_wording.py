"""Notifications in words: the subject is the verdict, both parts of a mail say the same."""

from datetime import datetime, timedelta

from diagnostics.alerting.notification_facts import Facts
from diagnostics.figures import duration, shorten

WORDS = {
    "fired": ("{verdict}", "{why}"),
    "worsened": ("Severity raised: {verdict}", "Severity raised to {severity}."),
    "recovered": ("Resolved after {lasted}: {title}", "The incident lasted {lasted}."),
    "usual": (
        "New baseline after {lasted}: {title}",
        "The rate did not drop. After {lasted} at one level, that level is the new baseline,"
        " and the incident is resolved.",
    ),
    "resolved": ("Resolved by {ended_by} after {lasted}: {title}", "The incident lasted {lasted}."),
    "reopened": ("Firing again: {verdict}", "The incident had been resolved, and fires again."),
    "reminder": ("Open for {lasted}: {verdict}", "Not acknowledged yet. {note}"),
    "escalated": ("Not acknowledged for {lasted}: {verdict}", "Escalated to this channel. {note}"),
    "digest": ("{title}", "Several alerts in one message. {note}"),
    "test": ("Test message from {project}", "{note}"),
    "canary": ("Daily test message from {project}", "{note}"),
}
"""By reason: the subject, and why it was sent."""


def subject_of(facts: Facts) -> str:
    """Write the one line that a phone shows."""
    return _worded(facts, 0)


def mail_subject_of(facts: Facts) -> str:
    """Write the subject of a mail: project and severity first, short enough for a phone."""
    if facts.incident is None:
        return subject_of(facts)
    title = shorten(facts.title, LONGEST_TITLE)
    verdict = f"{title}, {facts.rate.part}" if facts.rate else title
    short = facts.model_copy(update={"headline": verdict, "title": title})
    return f"[{shorten(facts.project, LONGEST_TITLE)}] {facts.severity}: {subject_of(short)}"


def lead_of(facts: Facts) -> str:
    """Say in one sentence why this was sent."""
    return _worded(facts, 1)


def _worded(facts: Facts, place: int) -> str:
    reason = facts.reason
    if reason == "recovered":
        reason = "usual" if facts.is_usual else "resolved" if facts.ended_by else reason
    elif facts.is_reopened:
        reason = "reopened"
    # What was frozen before the parts were known has all of it in one.
    verdict = (facts.headline or facts.sentence or facts.title).rstrip(".")
    words = WORDS[reason][place]
    lasted = duration(facts.lasted)
    return words.format(verdict=verdict, lasted=lasted, **dict(facts)).strip()


def story_of(facts: Facts) -> str:
    """Say what neither subject nor lead says of the verdict; once resolved, all of it."""
    if facts.reason == "recovered":
        return f"Last verdict: {facts.sentence}" if facts.sentence else ""
    return facts.why if facts.reason != "fired" else ""


LONGEST_TITLE = 48
"""Of a project or incident in the subject of a mail."""
COLLECT = timedelta(minutes=5)
"""A digest waits so long for what else there is to tell."""
APART = timedelta(minutes=20)
MOST_LINES = 50


def digest_due(now: datetime, last: datetime | None) -> datetime:
    """Return when the next digest goes out, by when the last one did."""
    soon = now + COLLECT
    return soon if last is None else max(soon, last + APART)


def summarise(first: str, number: int) -> str:
    """Write the subject of a digest of so many alerts."""
    return first if number == 1 else f"{number:,} alerts: {first}"

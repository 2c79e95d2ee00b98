"""Notifications in words: the subject is the verdict, the text says the same as the HTML."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from diagnostics.alerting.notification_facts import Facts
from diagnostics.figures import duration

WORDS = {
    "fired": ("{verdict}", "An incident has begun."),
    "worsened": ("Worse now: {verdict}", "The incident has become {severity}."),
    "recovered": ("Recovered after {lasted}: {title}", "It is over: it lasted {lasted}."),
    "usual": (
        "Taken for usual after {lasted}: {title}",
        "It did not get better. After {lasted} at one level, that level is taken for the usual"
        " one, and the alarm ends.",
    ),
    "reminder": (
        "Still open for {lasted}: {verdict}",
        "It is still open, and nobody has acknowledged it. {note}",
    ),
    "escalated": (
        "Nobody has acknowledged for {lasted}: {verdict}",
        "Nobody has acknowledged it. {note}",
    ),
    "digest": ("{title}", "More than usual happened, so it is told in one message. {note}"),
    "test": ("Test of a channel of {project}", "{note}"),
    "canary": ("Daily check: alerts of {project} get through", "{note}"),
}
"""By reason: the subject, and why it was sent."""


def subject_of(facts: Facts) -> str:
    """Write the one line that a phone shows."""
    return _worded(facts, 0)


def lead_of(facts: Facts) -> str:
    """Say in one sentence why this was sent."""
    return _worded(facts, 1)


def _worded(facts: Facts, place: int) -> str:
    is_usual = facts.reason == "recovered" and facts.is_usual
    # What was frozen before the parts were known has all of it in one.
    verdict = (facts.headline or facts.sentence or facts.title).rstrip(".")
    words = WORDS["usual" if is_usual else facts.reason][place]
    lasted = duration(facts.lasted)
    return words.format(verdict=verdict, lasted=lasted, **dict(facts)).strip()


def story_of(facts: Facts) -> str:
    """Say what the verdict says beyond the subject; of what is over, all that it said."""
    if facts.reason == "recovered":
        return f"The last verdict: {facts.sentence}" if facts.sentence else ""
    return facts.why


COLLECT = timedelta(minutes=5)
"""A digest waits so long for what else there is to tell."""
APART = timedelta(minutes=20)
MOST_LINES = 50


def digest_due(now: datetime, last: datetime | None) -> datetime:
    """Return when the next digest goes out, by when the last one did."""
    soon = now + COLLECT
    return soon if last is None else max(soon, last + APART)


def summarise(verdicts: Sequence[str]) -> str:
    """Write the subject of a digest."""
    if len(verdicts) == 1:
        return verdicts[0]
    return f"{len(verdicts)} alerts: {verdicts[0]}"

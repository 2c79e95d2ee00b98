"""Notifications in words: the subject is the verdict, the text says the same as the HTML."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from diagnostics.alerting.notification_facts import Facts
from diagnostics.figures import duration

LEADS = {"worsened": "Worse now", "reminder": "Still open", "escalated": "Nobody has acknowledged"}


def subject_of(facts: Facts) -> str:
    """Write the one line that a phone shows."""
    match facts.reason:
        case "recovered" if facts.is_usual:
            return f"Taken for usual after {duration(facts.lasted)}: {facts.title}"
        case "recovered":
            return f"Recovered after {duration(facts.lasted)}: {facts.title}"
        case "digest":
            return facts.title
        case "test":
            return f"Test of a channel of {facts.project}"
        case "canary":
            return f"Daily check: alerts of {facts.project} get through"
    lead = LEADS.get(facts.reason)
    # What was frozen before the parts were known has all of it in one.
    told = (facts.headline or facts.sentence or facts.title).rstrip(".")
    if lead and facts.reason != "worsened":
        lead += f" for {duration(facts.lasted)}"
    return f"{lead}: {told}" if lead else told


def story_of(facts: Facts) -> str:
    """Say what the verdict says beyond the subject; of what is over, all that it said."""
    if facts.reason == "recovered":
        return f"The last verdict: {facts.sentence}" if facts.sentence else ""
    return facts.why


def lead_of(facts: Facts) -> str:
    """Say in one sentence why this was sent."""
    match facts.reason:
        case "fired":
            return "An incident has begun."
        case "worsened":
            return f"The incident has become {facts.severity}."
        case "recovered" if facts.is_usual:
            lasted = duration(facts.lasted)
            return (
                f"It did not get better. After {lasted} at one level, that level is taken"
                " for the usual one, and the alarm ends."
            )
        case "recovered":
            return f"It is over: it lasted {duration(facts.lasted)}."
        case "reminder":
            return f"It is still open, and nobody has acknowledged it. {facts.note}".strip()
        case "escalated":
            return f"Nobody has acknowledged it. {facts.note}".strip()
        case "digest":
            return f"More than usual happened, so it is told in one message. {facts.note}".strip()
    return facts.note


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

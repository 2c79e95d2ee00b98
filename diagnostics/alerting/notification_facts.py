"""What a notification says: frozen when it is written, so that each try says the same.

The subject is the verdict, and both parts of a mail say the same.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from diagnostics.figures import duration, shorten
from diagnostics.verdict.advice import Advice
from diagnostics.verdict.wording import Sentence, StoredRate


class Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SampleRun(Fact):
    reference: str
    path: str


class DigestLine(Fact):
    subject: str
    path: str
    at: datetime


class Facts(Fact):
    """What a notification says; texts are redacted, links are paths."""

    reason: str
    project: str
    severity: str = "warning"
    at: datetime
    title: str = ""
    zone: str = "UTC"
    # The verdict, worded in the zone.
    told: Sentence | None = None
    incident: int | None = None
    path: str = ""
    onset: datetime | None = None
    # Both ends of its 95 % interval, where it is known to no more than that.
    onset_low: datetime | None = None
    onset_high: datetime | None = None
    fired_at: datetime | None = None
    ended_at: datetime | None = None
    rate: StoredRate | None = None
    # What the rate is of, if not of what the title names.
    rate_subject: str = ""
    cause: str = ""
    advice: Sequence[Advice] = ()
    samples: list[SampleRun] = Field(default_factory=list)
    rules: list[str] = Field(default_factory=list)
    slices: list[str] = Field(default_factory=list)
    more_slices: int = 0
    lines: list[DigestLine] = Field(default_factory=list)
    more_lines: int = 0
    # Why a canary or test was sent, or how long nobody has acknowledged.
    note: str = ""
    # The alarm ends though nothing got better: the level has become the usual one.
    is_usual: bool = False
    # Who resolved it; empty when it recovered by itself.
    ended_by: str = ""
    is_reopened: bool = False

    @property
    def verdict(self) -> tuple[str, str]:
        return self.told.written(ZoneInfo(self.zone), self.at) if self.told else (self.title, "")

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    @property
    def is_over(self) -> bool:
        return self.reason == "recovered"

    @property
    def lasted(self) -> float | None:
        """Seconds from the onset to the end, or to now while it goes on."""
        began = self.onset or self.fired_at
        if began is None:
            return None
        return ((self.ended_at or self.at) - began).total_seconds()


WORDS = {
    "fired": ("{verdict}", "{why}"),
    "worsened": ("Severity raised: {verdict}", "Severity raised to {severity}."),
    "recovered": ("Resolved after {lasted}: {title}", ""),
    "usual": (
        "New baseline after {lasted}: {title}",
        "The rate did not drop. After {lasted} at one level, that level is the new baseline,"
        " and the incident is resolved.",
    ),
    "resolved": ("Resolved by {ended_by} after {lasted}: {title}", ""),
    "reopened": ("Firing again: {verdict}", "The incident had been resolved, and fires again."),
    "reminder": ("Open for {lasted}: {verdict}", "Not acknowledged yet. {note}"),
    "escalated": ("Not acknowledged for {open}: {verdict}", "Escalated to this channel."),
    "digest": ("{title}", ""),
    "test": ("Test message from {project}", "{note}"),
    "canary": ("Daily test message from {project}", "{note}"),
}
"""By reason: the headline, and why it was sent."""


def headline_of(facts: Facts) -> str:
    """Write the verdict in one line."""
    return _status_line(facts, 0)


def brief_of(facts: Facts) -> str:
    """Write the headline with no more of the verdict than whom it is on, and the rate."""
    title = shorten(facts.rate_subject or facts.title, LONGEST_TITLE)
    verdict = f"{title}, {facts.rate.part}" if facts.rate else title
    return headline_of(
        facts.model_copy(update={"told": Sentence(verdict, None, ""), "title": title})
    )


def subject_of(facts: Facts) -> str:
    """Write the subject of a mail or title in a chat: what a phone shows, what matters first."""
    if facts.reason in NAMED:
        return headline_of(facts)
    severity = "" if facts.is_over else f"{facts.severity}: "
    brief = facts.title if facts.lines else brief_of(facts)
    return f"[{shorten(facts.project, LONGEST_TITLE)}] {severity}{brief}"


def lead_of(facts: Facts) -> str:
    """Say in one sentence why this was sent."""
    return _status_line(facts, 1)


def _status_line(facts: Facts, place: int) -> str:
    reason = facts.reason
    if facts.is_over:
        reason = "usual" if facts.is_usual else "resolved" if facts.ended_by else reason
    elif facts.is_reopened:
        reason = "reopened"
    verdict, why = facts.verdict
    known = {
        "verdict": verdict.rstrip("."),
        "why": why,
        "lasted": duration(facts.lasted),
        "open": duration(facts.at - facts.fired_at if facts.fired_at else None),
    }
    return WORDS[reason][place].format(**known, **dict(facts)).strip()


def story_of(facts: Facts) -> str:
    """Say what neither headline nor lead says of the verdict; once resolved, all of it."""
    if facts.is_over:
        return f"Last verdict: {' '.join(facts.verdict)}".strip()
    return facts.verdict[1] if facts.reason != "fired" else ""


LONGEST_TITLE = 48
"""Of a project or incident in a subject."""
NAMED = frozenset({"test", "canary"})
"""Whose headline names the project."""
COLLECT = timedelta(minutes=5)
"""A digest waits so long for what else there is to tell."""
APART = timedelta(minutes=20)
MOST_LINES = 50


def digest_due(now: datetime, last: datetime | None) -> datetime:
    """Return when the next digest goes out, by when the last one did."""
    soon = now + COLLECT
    return soon if last is None else max(soon, last + APART)


def summarise(first: str, number: int, over: int) -> str:
    """Write the headline of a digest of so many alerts, so many of which are resolved."""
    if number == 1:
        return first
    resolved = f", {over:,} resolved" if over else ""
    return f"{number:,} alerts{resolved}: {first}"

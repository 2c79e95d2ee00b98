"""Whether a channel is told of something: one rule after the other, the first one decides."""

from dataclasses import dataclass
from datetime import datetime, time
from enum import StrEnum
from zoneinfo import ZoneInfo

from diagnostics.alerting.states import rank

# What is kept back begins with this, and is told when they are over.
QUIET_HOURS = "quiet hours"


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From a local time to another; across midnight when the end comes first."""

    begin: time
    end: time
    zone: str

    def cover(self, at: datetime) -> bool:
        """Whether a moment lies within; the end is not part of it."""
        local = at.astimezone(ZoneInfo(self.zone)).time()
        if self.begin <= self.end:
            return self.begin <= local < self.end
        return local >= self.begin or local < self.end

    @property
    def words(self) -> str:
        return f"{self.begin:%H:%M} to {self.end:%H:%M} {self.zone}"


class RoutingResult(StrEnum):
    QUEUED = "queued"
    SUPPRESSED = "suppressed"
    DIGESTED = "digested"


@dataclass(frozen=True, slots=True)
class Listener:
    """What a channel wants, and how much was sent to it in the last hour."""

    min_severity: str
    quiet: QuietHours | None
    digest_above: int
    sent_in_hour: int


@dataclass(frozen=True, slots=True)
class Occasion:
    """A change of an incident that a channel may be notified of.

    `held_by` names what mutes it: a silence, or that a person resolved it; `was_notified` says
    whether this channel was notified of the incident before, `has_alert` whether that opened an
    alert there that a recovery closes.
    """

    severity: str
    at: datetime
    is_recovery: bool = False
    was_notified: bool = False
    has_alert: bool = False
    held_by: str = ""


def decide(listener: Listener, news: Occasion) -> tuple[RoutingResult, str]:
    """Return what becomes of a notification, and why unless it is queued.

    1. A recovery goes to the channels that were notified of the incident, and to no other; what
       closes an alert is always sent, even under a silence or when a person resolved it.
    2. What is silenced or below the channel's severity is suppressed.
    3. So is what falls into quiet hours; it is sent after them, if the incident is still open.
    4. Beyond a number an hour, the rest is collected in a digest.
    """
    if news.is_recovery and news.has_alert:
        return RoutingResult.QUEUED, ""
    if why := _why_suppressed(listener, news):
        return RoutingResult.SUPPRESSED, why
    if listener.sent_in_hour >= listener.digest_above:
        return RoutingResult.DIGESTED, f"more than {listener.digest_above} within an hour"
    return RoutingResult.QUEUED, ""


def _why_suppressed(listener: Listener, news: Occasion) -> str:
    if news.is_recovery:
        return news.held_by if news.was_notified else "the channel was not notified of the incident"
    if news.held_by:
        return news.held_by
    if rank(news.severity) < rank(listener.min_severity):
        return f"{news.severity} is below {listener.min_severity}"
    if listener.quiet is not None and listener.quiet.cover(news.at):
        return f"{QUIET_HOURS}, {listener.quiet.words}"
    return ""

"""Whether a channel is told of something: one rule after the other, the first one decides."""

from dataclasses import dataclass
from datetime import datetime, time
from enum import StrEnum
from zoneinfo import ZoneInfo

from diagnostics.alerting.severity import rank

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
        """The hours as they stand on a page."""
        return f"{self.begin:%H:%M} to {self.end:%H:%M} {self.zone}"


class Fate(StrEnum):
    """What becomes of a notification when it is written."""

    QUEUED = "queued"
    SUPPRESSED = "suppressed"
    DIGESTED = "digested"


@dataclass(frozen=True, slots=True)
class Listener:
    """What a channel wants, and what it was told in the last hour."""

    enabled: bool
    min_severity: str
    quiet: QuietHours | None
    digest_above: int
    told_in_hour: int
    # A recovery closes the alert there that the fire has opened.
    is_closing: bool = False


@dataclass(frozen=True, slots=True)
class News:
    """What there is to tell.

    `held_by` names what mutes it: a silence, or that a person resolved it; `was_told` says
    whether this channel heard of the incident before.
    """

    severity: str
    at: datetime
    is_recovery: bool = False
    was_told: bool = False
    held_by: str = ""


@dataclass(frozen=True, slots=True)
class RoutingDecision:
    """What becomes of it, and why in words; nothing to say when it is queued."""

    fate: Fate
    why: str = ""


def decide(listener: Listener, news: News) -> RoutingDecision:
    """Decide what a channel is told.

    1. A channel that is off is told nothing.
    2. A recovery goes to whoever was told of the incident, and to nobody else; under a
       silence, or when a person resolved it, only to what closes an alert by it.
    3. What is silenced or below the channel's severity is kept back.
    4. So is what falls into quiet hours: it is told afterwards, if it still lasts.
    5. Beyond so many in an hour, the rest is told in a digest.
    """
    if not listener.enabled:
        return _held("the channel is off")
    if news.is_recovery and not news.was_told:
        return _held("the channel was not notified of the incident")
    if news.is_recovery and news.held_by and not listener.is_closing:
        return _held(news.held_by)
    if not news.is_recovery:
        why = _kept_back(listener, news)
        if why:
            return _held(why)
    if listener.told_in_hour >= listener.digest_above:
        why = f"more than {listener.digest_above} within an hour"
        return RoutingDecision(Fate.DIGESTED, why)
    return RoutingDecision(Fate.QUEUED)


def _kept_back(listener: Listener, news: News) -> str:
    if news.held_by:
        return news.held_by
    if rank(news.severity) < rank(listener.min_severity):
        return f"{news.severity} is below {listener.min_severity}"
    if listener.quiet is not None and listener.quiet.cover(news.at):
        return f"{QUIET_HOURS}, {listener.quiet.words}"
    return ""


def _held(why: str) -> RoutingDecision:
    return RoutingDecision(Fate.SUPPRESSED, why)

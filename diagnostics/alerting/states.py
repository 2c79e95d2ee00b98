"""How a slice stands: what a look at it makes of its state.

ok -> pending -> firing -> clearing -> resolved -> ok. An acknowledged slice fires on and
clears like a firing one. What was resolved by hand stays so until the detector is quiet,
or a day has passed. Silences change nothing here.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

HELD_SECONDS = 86_400
RELAPSE_SECONDS = 3600
"""An alarm that comes back so soon is over only after as long without firing."""


class AlertPhase(StrEnum):
    """Where a slice stands; a silence is beside it and changes nothing here."""

    OK = "ok"
    # It holds, and not yet for long enough.
    PENDING = "pending"
    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    # It is over, and not yet for long enough.
    CLEARING = "clearing"
    RESOLVED = "resolved"
    NO_DATA = "no_data"


ON = frozenset({AlertPhase.FIRING, AlertPhase.ACKNOWLEDGED, AlertPhase.CLEARING})
"""States of a slice whose incident is open."""


class NoData(StrEnum):
    """What a slice without calls means."""

    # It stays as it is.
    KEEP = "keep"
    # What was firing is over.
    CLEAR = "clear"
    # It is the trouble itself.
    FIRE = "fire"


class StateChange(StrEnum):
    FIRED = "fired"
    CLEARED = "cleared"


class DetectorSignal(StrEnum):
    QUIET = "quiet"
    FIRES = "fires"
    CLEARS = "clears"
    NO_DATA = "no_data"


LONGEST_SECONDS = 7 * 86_400
Seconds = Annotated[StrictInt, Field(ge=0, le=LONGEST_SECONDS)]


# The columns of `AlertRule` say what each means.
class HoldTimes(BaseModel):
    """How long things must hold before they count."""

    model_config = ConfigDict(frozen=True)

    for_seconds: Seconds = 0
    clear_seconds: Seconds = 0
    no_data: NoData = NoData.CLEAR
    no_data_seconds: Seconds = 6 * 3600
    is_latching: StrictBool = False


@dataclass(frozen=True, slots=True)
class SliceStatus:
    """Where a slice stands since when (seconds).

    `was` is what a clearing slice goes back to; `is_held` says that it was resolved by
    hand while its detector still fired. `ended` is its latest recovery; of one that fires,
    only if it came back soon.
    """

    state: AlertPhase = AlertPhase.OK
    since: float = 0.0
    was: AlertPhase = AlertPhase.FIRING
    is_held: bool = False
    ended: float = 0.0


def time_of(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


Step = tuple[SliceStatus, StateChange | None]


def advance(
    now: float, standing: SliceStatus, signal: DetectorSignal, hold_times: HoldTimes
) -> Step:
    """Take a look at a slice; gives how it stands now, and what happened, if anything.

    `signal` is NO_DATA when there were no calls for longer than its hold times allow.
    """
    if signal is DetectorSignal.NO_DATA:
        return _without_data(now, standing, hold_times)
    if standing.state in ON:
        return _on(now, standing, signal, hold_times)
    return _off(now, standing, signal, hold_times)


def _off(now: float, standing: SliceStatus, signal: DetectorSignal, hold_times: HoldTimes) -> Step:
    if signal is not DetectorSignal.FIRES:
        return _settle(now, standing, AlertPhase.OK), None
    if standing.is_held and now < standing.since + HELD_SECONDS:
        return standing, None
    if standing.state is not AlertPhase.PENDING:
        standing = SliceStatus(AlertPhase.PENDING, now, ended=standing.ended)
    if now < standing.since + hold_times.for_seconds:
        return standing, None
    ended = standing.ended if now <= standing.ended + RELAPSE_SECONDS else 0.0
    return SliceStatus(AlertPhase.FIRING, now, ended=ended), StateChange.FIRED


def _on(now: float, standing: SliceStatus, signal: DetectorSignal, hold_times: HoldTimes) -> Step:
    is_clearing = standing.state is AlertPhase.CLEARING
    if is_clearing and standing.ended and signal is DetectorSignal.QUIET:
        return standing, None
    if signal is not DetectorSignal.CLEARS or hold_times.is_latching:
        return (replace(standing, state=standing.was, since=now) if is_clearing else standing), None
    if not is_clearing:
        standing = replace(standing, state=AlertPhase.CLEARING, since=now, was=standing.state)
    relapsed = RELAPSE_SECONDS if standing.ended else 0
    if now < standing.since + max(hold_times.clear_seconds, relapsed):
        return standing, None
    return SliceStatus(AlertPhase.RESOLVED, now, ended=now), StateChange.CLEARED


def _without_data(now: float, standing: SliceStatus, hold_times: HoldTimes) -> Step:
    if hold_times.no_data is NoData.FIRE:
        return advance(now, standing, DetectorSignal.FIRES, hold_times)
    if standing.is_held and now < standing.since + HELD_SECONDS:
        return standing, None
    if standing.state not in ON:
        return _settle(now, standing, AlertPhase.NO_DATA), None
    if hold_times.no_data is NoData.CLEAR and not hold_times.is_latching:
        return SliceStatus(AlertPhase.NO_DATA, now), StateChange.CLEARED
    return standing, None


def _settle(now: float, standing: SliceStatus, state: AlertPhase) -> SliceStatus:
    return standing if standing.state is state else SliceStatus(state, now, ended=standing.ended)


def acknowledged(standing: SliceStatus) -> SliceStatus:
    """Mark a firing slice as seen by somebody; it goes on as it would have."""
    if standing.state is AlertPhase.FIRING:
        return replace(standing, state=AlertPhase.ACKNOWLEDGED)
    if standing.state is AlertPhase.CLEARING:
        return replace(standing, was=AlertPhase.ACKNOWLEDGED)
    return standing


def resolved(now: float, standing: SliceStatus) -> SliceStatus:
    """End it by hand: it fires no more before its detector was quiet once."""
    return held(now) if standing.state in ON else standing


def held(now: float) -> SliceStatus:
    """Return how a slice stands that fires no more before its detector was quiet once."""
    return SliceStatus(AlertPhase.RESOLVED, now, is_held=True)


class Severity(StrEnum):
    """How urgent it is, the least first."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


ORDER = tuple(Severity)


def rank(severity: str) -> int:
    """Return the place in the order; what is not known ranks as a warning."""
    return ORDER.index(Severity(severity) if severity in ORDER else Severity.WARNING)

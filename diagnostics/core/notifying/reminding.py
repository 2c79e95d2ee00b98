"""Telling again: who has not been heard of, and what nobody has taken on."""

from dataclasses import dataclass
from datetime import datetime, timedelta

LONGEST = timedelta(days=7)
"""An incident that is open for longer is told no more."""


@dataclass(frozen=True, slots=True)
class Open:
    """An incident that goes on: when it fired, who has it, what a channel has heard.

    `told_at` is the latest notification of any kind; `missed_at` one that quiet hours
    held back; `rounds` counts those sent again; `escalated` says whether it has gone on.
    """

    fired_at: datetime
    acknowledged: bool
    told_at: datetime | None
    missed_at: datetime | None = None
    rounds: int = 0
    escalated: bool = False


def is_due_again(case: Open, every: timedelta | None, now: datetime) -> bool:
    """Ask whether a channel is told again.

    Never once somebody has acknowledged. What was missed in quiet hours is told when they
    are over; apart from that every so often, where the channel wants it.
    """
    if case.acknowledged or now - case.fired_at > LONGEST:
        return False
    if case.missed_at and (case.told_at is None or case.told_at < case.missed_at):
        return True
    return bool(every and case.told_at and now - case.told_at >= every)


def is_to_escalate(case: Open, after: timedelta | None, now: datetime) -> bool:
    """Ask whether the next channel is told, since nobody has acknowledged."""
    if case.acknowledged or case.escalated or after is None:
        return False
    return after <= now - case.fired_at <= LONGEST

"""Which stretch of time is looked at for an onset, and in slots of what width."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from diagnostics.core.windows import WIDTHS, Grain, Window, align_to, floor

SLOT = timedelta(minutes=10)
HOUR = WIDTHS[Grain.HOUR]
SHORTEST = timedelta(hours=24)
EARLY = 12
"""Slots at the begin of a stretch: an onset there may lie before it."""
MINUTES_REACH = timedelta(hours=47)
"""Minutes are kept for two days; an hour of reserve."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The slots that are looked at: where they begin and how wide they are."""

    window: Window
    width: timedelta

    @property
    def count(self) -> int:
        """How many there are."""
        return -(-(self.window.until - self.window.since) // self.width)

    def begin(self, slot: int) -> datetime:
        """When a slot begins."""
        return self.window.since + slot * self.width


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about; versions are known by the hour only."""

    since: datetime
    until: datetime
    now: datetime
    by_version: bool = False

    @property
    def _reach(self) -> datetime:
        return self.now - MINUTES_REACH


def stretch_of(asked: Asked) -> Stretch:
    """Give slots of ten minutes for up to two days, else of hours; a day at least."""
    since = min(asked.since, asked.until - SHORTEST)
    by_minute = since >= asked._reach and not asked.by_version
    width = SLOT if by_minute else HOUR
    grain = Grain.MINUTE if by_minute else Grain.HOUR
    return Stretch(align_to(grain, floor(since, width), asked.until), width)


def closer_look(asked: Asked, used: Stretch, earliest: datetime) -> Stretch | None:
    """Give a stretch that tells more of an onset that was found; None: there is none.

    An onset near the begin of a stretch may lie before it; slots of an hour hide when in it.
    """
    longest = stretch_of(replace(asked, since=asked._reach, by_version=False))
    if asked.by_version or longest.width != SLOT or longest == used:
        return None
    is_first = earliest < used.begin(EARLY)
    if used.width == SLOT:
        return longest if is_first else None
    return longest if earliest >= longest.begin(0) else None

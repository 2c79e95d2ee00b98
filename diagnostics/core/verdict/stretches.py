"""Which stretch of time is looked at for an onset, and in slots of what width."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from diagnostics.core.windows import WIDTHS, Grain, Window, align_to, floor

SLOT = timedelta(minutes=10)
HOUR = WIDTHS[Grain.HOUR]
DAY = WIDTHS[Grain.DAY]
SHORTEST = timedelta(hours=24)
EARLY = 12
"""Slots at the begin of a stretch: an onset there may lie before it."""
MINUTES_REACH = timedelta(hours=47)
"""Minutes are kept for two days; an hour of reserve."""
HOURS_REACH = timedelta(days=8)
"""Beyond, slots are days (UTC): what they hide is looked at once more, by the hour."""
BEFORE, AFTER = timedelta(days=3), timedelta(days=4)
"""How much around the onset a closer look takes in."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The slots that are looked at: which time they cover and how wide they are."""

    window: Window
    width: timedelta

    @property
    def origin(self) -> datetime:
        """When the first slot begins; what lies before the window does not count."""
        return floor(self.window.since, self.width)

    @property
    def count(self) -> int:
        """How many there are."""
        return -(-(self.window.until - self.origin) // self.width)

    def begin(self, slot: int) -> datetime:
        """When a slot begins."""
        return max(self.origin + slot * self.width, self.window.since)

    def end(self, slot: int) -> datetime:
        """When a slot ends."""
        return self.origin + (slot + 1) * self.width

    def around(self, first: int, last: int) -> "Stretch | None":
        """Give the hours around the days between which an onset lies; None: nothing hides."""
        if self.width != DAY or last - first > HOURS_REACH // DAY:
            return None
        since = max(self.begin(first) - BEFORE, self.window.since)
        until = min(self.end(last) + AFTER, self.window.until)
        return Stretch(align_to(Grain.HOUR, since, until), HOUR)


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
    """Give slots of ten minutes for up to two days, of hours for a week, else of days."""
    since = min(asked.since, asked.until - SHORTEST)
    if since >= asked._reach and not asked.by_version:
        return Stretch(align_to(Grain.MINUTE, floor(since, SLOT), asked.until), SLOT)
    width = HOUR if asked.until - since <= HOURS_REACH else DAY
    return Stretch(align_to(Grain.HOUR, since, asked.until), width)


def closer_look(asked: Asked, used: Stretch, earliest: datetime | None) -> Stretch | None:
    """Give a stretch that tells more of an onset that was found; None: there is none.

    An onset near the begin of a stretch may lie before it; slots of an hour hide when in
    it; in days nothing is seen of what began today.
    """
    if earliest is None:
        late = replace(asked, since=asked.until - MINUTES_REACH)
        return stretch_of(late) if used.width == DAY else None
    longest = stretch_of(replace(asked, since=asked._reach, by_version=False))
    if asked.by_version or longest.width != SLOT or longest == used:
        return None
    is_first = earliest < used.begin(EARLY)
    if used.width == SLOT:
        return longest if is_first else None
    return longest if earliest >= longest.begin(0) else None

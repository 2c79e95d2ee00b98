"""Quiet hours of a channel, in the zone of those who read it."""

from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From a local time to another; across midnight when the end comes first."""

    begin: time
    end: time
    zone: str

    def cover(self, at: datetime) -> bool:
        """Ask whether a moment lies within; the end is not part of it."""
        local = at.astimezone(ZoneInfo(self.zone)).time()
        if self.begin <= self.end:
            return self.begin <= local < self.end
        return local >= self.begin or local < self.end

    @property
    def words(self) -> str:
        """The hours as they stand on a page."""
        return f"{self.begin:%H:%M} to {self.end:%H:%M} {self.zone}"

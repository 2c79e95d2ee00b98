"""When a report is due and what it covers: whole local days, across clock changes.

1. A cadence names days; on each a report is due at a local time. A time skipped by a clock
   change is due after it; of a repeated time, the first counts.
2. The period of a due day reaches from the previous due day to it, midnight to midnight, so
   every instant is in exactly one period of a schedule. A day has 23, 24 or 25 hours.
3. A date that does not exist (Apia, 30 December 2011) is in no period.
"""

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import count
from zoneinfo import ZoneInfo

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
WORKING_DAYS = 5
MOST_SKIPPED = 60


@dataclass(frozen=True, slots=True)
class ReportPeriod:
    """Whole local days: since <= t < until (UTC); `first` and `after` are local dates."""

    first: date
    after: date
    zone: ZoneInfo

    @property
    def since(self) -> datetime:
        return start_of(self.first, self.zone)

    @property
    def until(self) -> datetime:
        return start_of(self.after, self.zone)

    @property
    def days(self) -> int:
        return (self.after - self.first).days

    @property
    def last(self) -> date:
        return self.after - DAY

    def before(self) -> "ReportPeriod":
        """Return the same number of days right before it."""
        return ReportPeriod(self.first - self.days * DAY, self.first, self.zone)


@dataclass(frozen=True, slots=True)
class Due:
    """A report that is due at an instant (UTC), and its period."""

    at: datetime
    period: ReportPeriod


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cadence at a local time of a zone: `weekday` from 0 (Monday), `month_day` from 1.

    A month shorter than `month_day` has its report on its last day.
    """

    cadence: str
    at: time
    zone: ZoneInfo
    weekday: int | None = None
    month_day: int | None = None

    def after(self, instant: datetime) -> Due:
        return next(due for due in self._dues(instant, 1) if due.at > instant)

    def latest(self, instant: datetime) -> Due:
        return next(due for due in self._dues(instant, -1) if due.at <= instant)

    def between(self, since: datetime, until: datetime) -> list[Due]:
        """Return what was due in since <= t < until, oldest first; at most the latest 60."""
        dues: list[Due] = []
        due = self.latest(until - SECOND)
        while due.at >= since and len(dues) < MOST_SKIPPED:
            dues.append(due)
            due = self.latest(due.at - SECOND)
        return dues[::-1]

    def _dues(self, instant: datetime, step: int) -> Iterator[Due]:
        """Return what is due from a day before (or after, backwards) an instant on."""
        today = instant.astimezone(self.zone).date()
        return filter(None, (self._due(today + step * days * DAY) for days in count(-1)))

    def _due(self, day: date) -> Due | None:
        """Return what is due on a date; None if nothing is, or the period is empty."""
        if not self._names(day):
            return None
        days = (day - before * DAY for before in count(1))
        period = ReportPeriod(next(filter(self._names, days)), day, self.zone)
        if period.until <= period.since:
            return None
        return Due(max(instant_of(day, self.at, self.zone), period.until), period)

    def _names(self, day: date) -> bool:
        if self.cadence == "weekdays":
            return day.weekday() < WORKING_DAYS
        if self.cadence == "weekly":
            return day.weekday() == (self.weekday or 0)
        if self.cadence == "monthly":
            return day.day == min(self.month_day or 1, monthrange(day.year, day.month)[1])
        return True


def instant_of(day: date, at: time, zone: ZoneInfo) -> datetime:
    """Return the instant (UTC) of a local time; after the gap when clocks leave it out."""
    return datetime.combine(day, at, zone).replace(fold=0).astimezone(UTC)


def start_of(day: date, zone: ZoneInfo) -> datetime:
    """Return the first instant (UTC) of a local day, or of the next existing one."""
    midnight = datetime.combine(day, time.min, zone)
    high = midnight.replace(fold=0).astimezone(UTC)
    low = midnight.replace(fold=1).astimezone(UTC)
    if low >= high:
        return high
    # Midnight is skipped: the day begins with the clock change, which is between the two.
    while high - low > SECOND:
        middle = low + (high - low) / 2
        if middle.astimezone(zone).date() >= day:
            high = middle
        else:
            low = middle
    return high.replace(microsecond=0)

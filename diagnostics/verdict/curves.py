"""Calls and failures of each series, slot by slot and by kind of failure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from diagnostics.analysis.series import SeriesKey
from diagnostics.store.windows import WIDTHS, Grain, TimeWindow, align, align_to, floor
from diagnostics.verdict.rates import noise_of_hours


@dataclass(slots=True)
class SeriesCurve:
    """Calls per slot, and failures per slot of each kind that occurred."""

    calls: list[int]
    failed: dict[str, list[int]] = field(default_factory=dict)

    @property
    def has_success(self) -> bool:
        return sum(self.calls) > sum(map(sum, self.failed.values()))

    def add(self, slot: int, calls: int, failures: Mapping[str, int]) -> None:
        self.calls[slot] += calls
        for kind, failed in failures.items():
            if failed:
                self.failed.setdefault(kind, [0] * len(self.calls))[slot] += failed


Curves = Mapping[SeriesKey, SeriesCurve]
SLOT = timedelta(minutes=10)
HOUR = WIDTHS[Grain.HOUR]
DAY = WIDTHS[Grain.DAY]
SHORTEST = timedelta(hours=24)
MINUTES_REACH = timedelta(hours=47)
"""Minutes are kept for two days, less an hour of reserve."""
HOURS_REACH = timedelta(days=8)
"""Beyond, slots are days (UTC)."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The slots to examine: the time that they cover and their width."""

    window: TimeWindow
    width: timedelta
    until: datetime
    """The moment that is judged, or the end of the window: the slot that runs ends here."""

    @property
    def origin(self) -> datetime:
        """The start of the first slot; calls before the window do not count."""
        return floor(self.window.since, self.width)

    @property
    def count(self) -> int:
        return -(-(self.window.until - self.origin) // self.width)

    @property
    def in_hours(self) -> "Stretch":
        """The same time in slots of an hour at least: a fraction of the rows."""
        return replace(self, width=max(self.width, HOUR))

    def begin(self, slot: int) -> datetime:
        return max(self.origin + slot * self.width, self.window.since)

    def end(self, slot: int) -> datetime:
        end = self.origin + (slot + 1) * self.width
        # An event may be minutes ahead of the clock, in a slot that has not begun.
        return min(end, self.until) if self.begin(slot) < self.until else end


@dataclass(frozen=True, slots=True)
class VerdictRange:
    """The range of a verdict; versions are known by the hour only."""

    since: datetime
    until: datetime
    now: datetime
    by_version: bool = False


def stretch_of(requested: VerdictRange) -> Stretch:
    """Return slots of ten minutes for up to two days, of hours for a week, else of days."""
    since = min(requested.since, requested.until - SHORTEST)
    if since >= requested.now - MINUTES_REACH and not requested.by_version:
        window, width = align_to(Grain.MINUTE, floor(since, SLOT), requested.until), SLOT
    else:
        window = align(since, requested.until, requested.now, Grain.HOUR)
        width = HOUR if requested.until - since <= HOURS_REACH else DAY
    return Stretch(window, width, min(window.until, requested.now))


def noise_before(curves: Curves, stretch: Stretch, until: datetime) -> float:
    """Return the squared variation of the rate of a slot, of an hour or a day."""
    slots = max(0, (until - stretch.origin) // stretch.width)
    rows = []
    for curve in curves.values():
        failed = map(sum, zip(*curve.failed.values(), strict=True))
        rows.append(list(zip(curve.calls[:slots], failed, strict=False)))
    return noise_of_hours(rows)

"""The rollup rows of a time window: days in the middle, hours and minutes at its edges.

A range is aligned first: each edge by itself, to the finest row kept of its time. The result
depends on the edge only, and both edges are rounded down: consecutive ranges share no row, and
days add up to their week in any zone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

# Older minutes are in hours and days only: alerts use the last two days at most.
MINUTES_KEPT = timedelta(hours=48)
HOURS_KEPT = timedelta(days=395)
# A time further ahead of the database's clock is a wrong one: the event counts when it arrives.
AHEAD = timedelta(minutes=5)
# What arrives later after its minute affects no alert.
LATE = timedelta(minutes=15)


class TimeMark(StrEnum):
    """Why an event affects alerts when it arrives, or not at all."""

    AHEAD = "ahead"
    LATE = "late"


class Grain(StrEnum):
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


WIDTHS = {
    Grain.MINUTE: timedelta(minutes=1),
    Grain.HOUR: timedelta(hours=1),
    Grain.DAY: timedelta(days=1),
}


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a window with rows of one grain: since <= bucket < until."""

    grain: Grain
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A time range that rollup rows cover exactly; since <= t < until."""

    since: datetime
    until: datetime
    finest: Grain

    @property
    def segments(self) -> Sequence[Segment]:
        return self.segments_to(Grain.DAY)

    def segments_to(self, coarsest: Grain) -> Sequence[Segment]:
        """Return the segments of the window, of no coarser grain, oldest first."""
        return _split(self.since, self.until, self.finest, coarsest)

    @property
    def in_hours(self) -> "TimeWindow":
        """The window in rows of at least hours, as versions and groups are counted."""
        hour = WIDTHS[Grain.HOUR]
        first, last = floor(self.since, hour), floor(self.until, hour)
        return TimeWindow(first, max(last, first + hour), _coarser(self.finest, Grain.HOUR))

    def before(self, span: timedelta) -> "TimeWindow":
        """The window of about `span` that ends where this one begins, and begins with a day."""
        since = floor(self.since - span, WIDTHS[Grain.DAY])
        return TimeWindow(since, self.since, self.finest)


def align(
    since: datetime, until: datetime, now: datetime, finest: Grain = Grain.MINUTE
) -> TimeWindow:
    """Return the aligned window of a range, no finer than `finest`, of one row at least.

    A range that ends now or later includes the whole hour in which it ends.
    """
    grains = [_coarser(finest, kept_of(edge, now)) for edge in (since, until)]
    first, last = (
        floor(edge, WIDTHS[grain]) for edge, grain in zip((since, until), grains, strict=True)
    )
    if until >= now:
        last = ceil(until, WIDTHS[Grain.HOUR])
    if first >= last:
        last = first + WIDTHS[grains[0]]
    return TimeWindow(first, last, min(grains, key=WIDTHS.__getitem__))


def align_to(grain: Grain, since: datetime, until: datetime) -> TimeWindow:
    """Widen a stretch of time to whole minutes, hours or days: for viewing, not for sums."""
    return TimeWindow(floor(since, WIDTHS[grain]), ceil(until, WIDTHS[grain]), grain)


def coarsest_of(origin: datetime, width: timedelta) -> Grain:
    """Return the coarsest grain whose rows fit into slots of this width from `origin`."""
    fitting = (
        grain
        for grain in (Grain.DAY, Grain.HOUR)
        if not width % WIDTHS[grain] and origin == floor(origin, WIDTHS[grain])
    )
    return next(fitting, Grain.MINUTE)


def floor(at: datetime, width: timedelta) -> datetime:
    """Round a time down to a multiple of `width` since 1970 (UTC)."""
    return at - (at - datetime.fromtimestamp(0, UTC)) % width


def ceil(at: datetime, width: timedelta) -> datetime:
    """Round a time up to a multiple of `width` since 1970 (UTC)."""
    return at + (datetime.fromtimestamp(0, UTC) - at) % width


def kept_of(at: datetime, now: datetime) -> Grain:
    """Return the finest grain in which the whole hour, or day, of a time is still kept."""
    # A minute of reserve: the rows read now were folded a moment ago.
    if floor(at, WIDTHS[Grain.HOUR]) >= now - MINUTES_KEPT + WIDTHS[Grain.MINUTE]:
        return Grain.MINUTE
    return Grain.HOUR if floor(at, WIDTHS[Grain.DAY]) >= now - HOURS_KEPT else Grain.DAY


def _coarser(first: Grain, second: Grain) -> Grain:
    return max(first, second, key=WIDTHS.__getitem__)


def _split(since: datetime, until: datetime, finest: Grain, coarsest: Grain) -> list[Segment]:
    first = last = until
    if WIDTHS[finest] < WIDTHS[coarsest]:
        above = Grain.HOUR if finest is Grain.MINUTE else Grain.DAY
        first, last = ceil(since, WIDTHS[above]), floor(until, WIDTHS[above])
    if first >= last:
        return [Segment(finest, since, until)] if since < until else []
    return [
        *_split(since, first, finest, finest),
        *_split(first, last, above, coarsest),
        *_split(last, until, finest, finest),
    ]


@dataclass(frozen=True, slots=True)
class RunBucket:
    runs: int
    degraded: int

    @property
    def share(self) -> float:
        return self.degraded / self.runs if self.runs else 0.0


def merged(buckets: Sequence[RunBucket], together: int) -> list[RunBucket]:
    """Return sums of neighbouring buckets, `together` at a time."""
    # The columns apart: a page adds up thousands of buckets.
    runs, degraded = [part.runs for part in buckets], [part.degraded for part in buckets]
    places = [slice(start, start + together) for start in range(0, len(buckets), together)]
    return [RunBucket(sum(runs[place]), sum(degraded[place])) for place in places]


def add_buckets(buckets: Sequence[RunBucket]) -> RunBucket:
    return RunBucket(sum(part.runs for part in buckets), sum(part.degraded for part in buckets))


def add_curves(curves: Sequence[Sequence[RunBucket]], count: int) -> Sequence[RunBucket]:
    """Return the sums of curves of `count` buckets each; most often there is one."""
    if len(curves) == 1:
        return curves[0]
    if not curves:
        return [RunBucket(0, 0)] * count
    runs = zip(*([part.runs for part in curve] for curve in curves), strict=True)
    degraded = zip(*([part.degraded for part in curve] for curve in curves), strict=True)
    return list(map(RunBucket, map(sum, runs), map(sum, degraded)))

"""From counts to a series item: its key, rates and curve."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from diagnostics.analysis.statistics import wilson_interval
from diagnostics.store.windows import RunBucket


class SeriesKey(NamedTuple):
    """A series: calls of one model at one node of one environment.

    As what several series have in common, it has None where they differ.
    """

    environment: str | None
    node: str | None
    provider: str | None
    model: str | None


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Counts of one series in one window.

    A run ends in exactly one `succeeded` or `degraded` event. The answers that nothing checked
    are in neither `first_pass` nor `repaired`, and `altered` counts the first passes whose
    reading changed a value. Calls are all attempts at this model, whatever model ended the run.
    """

    runs: int = 0
    degraded: int = 0
    first_pass: int = 0
    repaired: int = 0
    retry_tokens: int = 0
    retry_milliseconds: int = 0
    unchecked: int = 0
    altered: int = 0
    calls: int = 0
    calls_failed: int = 0
    first_attempts: int = 0
    cancelled: int = 0
    """By the caller: calls and runs in none of the other counts."""

    @property
    def by_call(self) -> "RunCounts":
        """Return the calls as if each were a run, with failed ones as degraded."""
        return RunCounts(
            self.calls,
            self.calls_failed,
            unchecked=self.unchecked,
            calls=self.calls,
            calls_failed=self.calls_failed,
            cancelled=self.cancelled,
        )


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares between 0 and 1, None where nothing was counted."""

    degraded_rate: float | None
    degraded_low: float | None
    degraded_high: float | None
    first_pass_rate: float | None
    repair_success_rate: float | None
    unaltered_rate: float | None
    calls_failed_rate: float | None
    calls_failed_low: float | None
    calls_failed_high: float | None


def rate_series(counts: RunCounts) -> Rates:
    """Turn the counts of a window into rates.

    First passes are of the checked first attempts. Repair success is repaired runs over those
    that ended here after a failed first attempt.
    """
    low, high = _interval(counts.degraded, counts.runs)
    failed_low, failed_high = _interval(counts.calls_failed, counts.calls)
    return Rates(
        degraded_rate=_share(counts.degraded, counts.runs),
        degraded_low=low,
        degraded_high=high,
        first_pass_rate=_share(counts.first_pass, counts.first_attempts),
        repair_success_rate=_share(counts.repaired, counts.repaired + counts.degraded),
        unaltered_rate=_share(counts.first_pass - counts.altered, counts.first_attempts),
        calls_failed_rate=_share(counts.calls_failed, counts.calls),
        calls_failed_low=failed_low,
        calls_failed_high=failed_high,
    )


def _interval(part: int, whole: int) -> tuple[float, float] | tuple[None, None]:
    return wilson_interval(part, whole) if whole > 0 else (None, None)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None


BUCKETS = 144
"""Of a day: the ten minutes of the verdict's slots."""
SHORTEST = timedelta(hours=24)
BY_HOUR = timedelta(days=8)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class StatusAxis:
    """The stretch of time in which series are drawn, and their onset is looked for."""

    since: datetime
    span: timedelta
    count: int = BUCKETS

    @property
    def until(self) -> datetime:
        return self.since + self.span

    @property
    def width(self) -> timedelta:
        return self.span / self.count

    def bar_of(self, at: datetime, bars: int) -> int:
        """Return the bar that a time lies in, of so many."""
        return min(max(int((at - self.since) / self.span * bars), 0), bars - 1)


def axis_of(since: datetime, until: datetime) -> StatusAxis:
    """Return the axis of a window: a day at least.

    It ends on a whole bucket, so that a curve does not slide with every look at it. Beyond
    a week or so a bucket is a day (UTC).
    """
    span = max(until - since, SHORTEST)
    count = BUCKETS if span <= BY_HOUR else -(-span // DAY)
    width = span / count if span <= BY_HOUR else DAY
    epoch = datetime.fromtimestamp(0, UTC)
    end = epoch + ((until - epoch) // width + 1) * width
    return StatusAxis(end - count * width, count * width, count)


@dataclass(frozen=True, slots=True)
class RunCurve:
    """The runs of a series in equal buckets from `since` on, oldest first."""

    since: datetime
    width: timedelta
    buckets: Sequence[RunBucket]

    def begin(self, bucket: int) -> datetime:
        return self.since + bucket * self.width

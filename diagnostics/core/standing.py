"""How a series stands: over the whole range, or since its trouble began."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property

from diagnostics.core.buckets import Bucket
from diagnostics.core.onset import LEAST_POINTS, lasting_onset
from diagnostics.core.series import (
    MINIMUM_RUNS,
    Counts,
    Rates,
    SeriesState,
    judge,
    rate_series,
)
from diagnostics.core.statistics import wilson_interval


class Standing(StrEnum):
    """How a series stands, worst first."""

    DEGRADING = "degrading"
    WATCH = "watch"
    RAISED = "above usual"
    OK = "ok"
    FEW_RUNS = "few runs"
    NO_RUNS = "no runs"


BUCKETS = 96
SHORTEST = timedelta(hours=24)
BY_HOUR = timedelta(days=8)
DAY = timedelta(days=1)
SURELY = 2.576
"""Of many rows one in two hundred is called above usual by chance."""
ORDER = {standing: place for place, standing in enumerate(Standing)}


@dataclass(frozen=True, slots=True)
class Onset:
    """Since when a series degrades: the bucket, its time, and the runs since then."""

    index: int
    at: datetime
    runs: int
    degraded: int

    @property
    def share(self) -> float:
        """Degraded share since the onset."""
        return self.degraded / self.runs


@dataclass(frozen=True, slots=True)
class Axis:
    """The stretch of time in which series are drawn, and their onset is looked for."""

    since: datetime
    span: timedelta
    count: int = BUCKETS

    @property
    def until(self) -> datetime:
        """Where it ends."""
        return self.since + self.span

    @property
    def width(self) -> timedelta:
        """Of one bucket."""
        return self.span / self.count

    def bar_of(self, at: datetime, bars: int) -> int:
        """Give the bar that a time lies in, of so many."""
        return min(max(int((at - self.since) / self.span * bars), 0), bars - 1)


def axis_of(since: datetime, until: datetime) -> Axis:
    """Give the axis of a window: a day at least.

    It ends on a whole bucket, so that a curve does not slide with every look at it. Beyond
    a week or so a bucket is a day (UTC).
    """
    span = max(until - since, SHORTEST)
    count = BUCKETS if span <= BY_HOUR else -(-span // DAY)
    width = span / count if span <= BY_HOUR else DAY
    epoch = datetime.fromtimestamp(0, UTC)
    end = epoch + ((until - epoch) // width + 1) * width
    return Axis(end - count * width, count * width, count)


@dataclass(frozen=True, slots=True)
class Curve:
    """The runs of a series in equal buckets from `since` on, oldest first."""

    since: datetime
    width: timedelta
    buckets: Sequence[Bucket]

    def onset(self, baseline: float | None, known: int) -> Onset | None:
        """Find the onset of a degradation that goes on; `known` runs say what is usual."""
        found = lasting_onset(self.buckets, baseline, known)
        if found is None:
            return None
        bad = self.buckets[found.at :]
        return Onset(
            found.at,
            self.since + found.at * self.width,
            sum(bucket.runs for bucket in bad),
            sum(bucket.degraded for bucket in bad),
        )


@dataclass(frozen=True)
class Subject:
    """A series, or several of one model, as a sentence sees it."""

    name: str
    place: str
    counts: Counts
    kinds: Counter[str] = field(default_factory=Counter)
    curve: Curve | None = None

    @cached_property
    def onset(self) -> Onset | None:
        """Since when it degrades, if the curve shows it."""
        if self.curve is None:
            return None
        return self.curve.onset(self.rates.baseline, self.counts.baseline_runs)

    @cached_property
    def rates(self) -> Rates:
        """The rates of the counts."""
        return rate_series(self.counts)

    @property
    def runs(self) -> int:
        """Runs in the range."""
        return self.counts.runs

    @property
    def top_kind(self) -> str | None:
        """The most frequent kind of failure."""
        top = self.kinds.most_common(1)
        return top[0][0] if top else None

    @cached_property
    def state(self) -> SeriesState:
        """The state over the whole range, or since the onset when that is worse.

        A range may begin long before the trouble: over 24 h an hour of failures is small.
        """
        rates, begun = self.rates, self.onset
        recent = begun and judge(begun.degraded, begun.runs, rates.baseline)
        return recent if recent is SeriesState.DEGRADING else rates.state

    @property
    def standing(self) -> Standing:
        """The state, where there are runs enough to tell."""
        if self.state is SeriesState.DEGRADING:
            return Standing.DEGRADING
        if self.runs < MINIMUM_RUNS:
            return Standing.FEW_RUNS if self.runs else Standing.NO_RUNS
        is_raised = self.state is SeriesState.OK and self._is_raised
        return Standing.RAISED if is_raised else Standing(self.state.value)

    @property
    def _is_raised(self) -> bool:
        """Whether the rate is surely above its baseline, if not by enough to watch it."""
        usual, counts = self.rates.baseline, self.counts
        if usual is None or counts.baseline_runs < counts.runs:
            return False
        low, _ = wilson_interval(counts.degraded, counts.runs, SURELY)
        return low > usual and counts.degraded >= (usual + LEAST_POINTS) * counts.runs

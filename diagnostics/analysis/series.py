"""From counts to a series item: rates, their interval, baseline and state."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, TypeVar

from diagnostics.analysis.onset import LEAST_POINTS, lasting_onset
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.store.windows import RunBucket

T = TypeVar("T")
MINIMUM_RUNS = 20
MARGIN = 0.05
DEFAULT_BASELINE = 0.0


class SeriesKey(NamedTuple):
    """A series: calls of one model at one node of one environment."""

    environment: str | None
    node: str
    provider: str | None
    model: str | None


class SeriesState(StrEnum):
    """How a series stands, worst first in `SEVERITY`."""

    DEGRADING = "degrading"
    WATCH = "watch"
    NO_DATA = "no_data"
    OK = "ok"


SEVERITY = {
    SeriesState.DEGRADING: 0,
    SeriesState.WATCH: 1,
    SeriesState.OK: 2,
    SeriesState.NO_DATA: 3,
}


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Counts of one series in one window.

    A run ends in exactly one `succeeded` or `degraded` event.
    """

    runs: int = 0
    degraded: int = 0
    first_pass: int = 0
    repaired: int = 0
    retry_tokens: int = 0
    retry_milliseconds: int = 0
    baseline_runs: int = 0
    baseline_degraded: int = 0


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares between 0 and 1, None where nothing was counted."""

    degraded_rate: float | None
    degraded_low: float | None
    degraded_high: float | None
    baseline: float | None
    first_pass_rate: float | None
    repair_success_rate: float | None
    state: SeriesState


def rate_series(counts: RunCounts) -> Rates:
    """Turn the counts of a window into rates and a state.

    Repair success is repaired runs over the runs whose first attempt failed.
    """
    baseline = _share(counts.baseline_degraded, counts.baseline_runs)
    if counts.runs == 0:
        return Rates(None, None, None, baseline, None, None, SeriesState.NO_DATA)
    low, high = wilson_interval(counts.degraded, counts.runs)
    return Rates(
        degraded_rate=counts.degraded / counts.runs,
        degraded_low=low,
        degraded_high=high,
        baseline=baseline,
        first_pass_rate=counts.first_pass / counts.runs,
        repair_success_rate=_share(counts.repaired, counts.runs - counts.first_pass),
        state=judge(counts.degraded, counts.runs, baseline),
    )


def judge(degraded: int, runs: int, baseline: float | None) -> SeriesState:
    """Say how a window stands against its baseline.

    The bar is max(2 x baseline, baseline + 5 points). Degrading: at least 20 runs and
    the lower Wilson bound above the bar; watch: only the rate itself is above it.
    """
    if runs == 0:
        return SeriesState.NO_DATA
    base = DEFAULT_BASELINE if baseline is None else baseline
    bar = max(2 * base, base + MARGIN)
    low, _ = wilson_interval(degraded, runs)
    if runs >= MINIMUM_RUNS and low > bar:
        return SeriesState.DEGRADING
    return SeriesState.WATCH if degraded / runs > bar else SeriesState.OK


def sort_worst_first(items: Iterable[tuple[Rates, T]]) -> list[tuple[Rates, T]]:
    """Order series worst first: by state, then by the lower bound of the rate."""
    return sorted(items, key=lambda item: (SEVERITY[item[0].state], -(item[0].degraded_low or 0.0)))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None


class SeriesStatus(StrEnum):
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
ORDER = {standing: place for place, standing in enumerate(SeriesStatus)}


@dataclass(frozen=True, slots=True)
class SeriesOnset:
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
class StatusAxis:
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

    def onset(self, baseline: float | None, known: int) -> SeriesOnset | None:
        """Find the onset of a degradation that goes on; `known` runs say what is usual."""
        found = lasting_onset(self.buckets, baseline, known)
        if found is None:
            return None
        bad = self.buckets[found.at :]
        return SeriesOnset(
            found.at,
            self.since + found.at * self.width,
            sum(bucket.runs for bucket in bad),
            sum(bucket.degraded for bucket in bad),
        )


@dataclass(frozen=True)
class RatedSeries:
    """A series, or several of one model, as a sentence sees it."""

    name: str
    place: str
    counts: RunCounts
    kinds: Counter[str] = field(default_factory=Counter)
    curve: RunCurve | None = None

    @cached_property
    def onset(self) -> SeriesOnset | None:
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
    def standing(self) -> SeriesStatus:
        """The state, where there are runs enough to tell."""
        if self.state is SeriesState.DEGRADING:
            return SeriesStatus.DEGRADING
        if self.runs < MINIMUM_RUNS:
            return SeriesStatus.FEW_RUNS if self.runs else SeriesStatus.NO_RUNS
        is_raised = self.state is SeriesState.OK and self._is_raised
        return SeriesStatus.RAISED if is_raised else SeriesStatus(self.state.value)

    @property
    def _is_raised(self) -> bool:
        """Whether the rate is surely above its baseline, if not by enough to watch it."""
        usual, counts = self.rates.baseline, self.counts
        if usual is None or counts.baseline_runs < counts.runs:
            return False
        low, _ = wilson_interval(counts.degraded, counts.runs, SURELY)
        return low > usual and counts.degraded >= (usual + LEAST_POINTS) * counts.runs

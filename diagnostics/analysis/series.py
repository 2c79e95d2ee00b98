"""A series: its key, rates and curve, and how it stands at a moment, by what its detector says.

A status belongs to (series, moment), whatever range a page shows: the evaluator stores it each
minute. Beside it only a cause that no series shows alone makes those degrade that it touches.
Thresholds: `docs/statistics.md`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Literal, NamedTuple

from diagnostics.analysis.statistics import LEAST_TRIALS, wilson_interval
from diagnostics.figures import shorten
from diagnostics.store.windows import RunBucket


class SeriesKey(NamedTuple):
    """A series: calls of one model at one node of one environment.

    As what several series have in common, it has None where they differ.
    """

    environment: str | None
    node: str | None
    provider: str | None
    model: str | None


ModelKey = tuple[str | None, str | None]
"""The provider and the model."""
LONGEST_NAME = 40


def name_of(provider: str | None, model: str | None) -> str:
    return "/".join(
        shorten(name, LONGEST_NAME) if name else "unknown" for name in (provider, model)
    )


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


STATUS_SPAN = timedelta(hours=24)
NOTHING = RunBucket(0, 0)

Unit = Literal["run", "call"]


class SeriesState(StrEnum):
    """How a series stands, worst first; no data are also failures without any success."""

    DEGRADING = "degrading"
    WATCH = "watch"
    OK = "ok"
    # Calls enough, and no detector: the project has too many series, or it is new.
    NOT_JUDGED = "not_judged"
    LOW_VOLUME = "low_volume"
    NO_DATA = "no_data"


ORDER = {state: place for place, state in enumerate(SeriesState)}
UNJUDGED = frozenset((SeriesState.NOT_JUDGED, SeriesState.LOW_VOLUME, SeriesState.NO_DATA))


@dataclass(frozen=True, slots=True)
class SeriesOnset:
    """Since when a series degrades, and the 95 % interval of that."""

    at: datetime
    low: datetime
    high: datetime


class DetectedState(NamedTuple):
    """What the detector of a series says at a moment.

    `counted` is what it counted since the onset, where it fires; `anew_since` when it took over
    from the detector of an earlier release; `over` from
    when to when the latest degradation that has ended lasted.
    """

    onset: SeriesOnset | None = None
    counted: RunBucket = NOTHING
    is_watched: bool = False
    anew_since: datetime | None = None
    over: tuple[datetime, datetime] | None = None


class UnitCounts(NamedTuple):
    """The runs of a stretch of time and the calls, with failed ones as degraded."""

    runs: RunBucket = NOTHING
    calls: RunBucket = NOTHING

    def of(self, unit: Unit) -> RunBucket:
        return self.runs if unit == "run" else self.calls


NO_COUNTS = UnitCounts()


@dataclass(frozen=True, slots=True)
class SeriesStatus:
    """How one series stands at one moment.

    The counts are those of its detector since the onset: first attempts, or runs where only
    their ends are told; of the 24 hours before `at` where it does not degrade.
    """

    key: SeriesKey
    at: datetime
    state: SeriesState
    onset: SeriesOnset | None
    runs: int
    degraded: int
    before: UnitCounts = NO_COUNTS
    """The week before these 24 hours; before the onset, if that is earlier."""
    unit: Unit = "run"
    shown: Unit = "run"
    """What pages count first: runs where they are told, unless only calls got worse."""
    anew_since: datetime | None = None
    """When its detector took over from that of an earlier release; None if it did not."""
    over: tuple[datetime, datetime] | None = None
    """From when to when its latest degradation lasted that has ended."""

    @property
    def since(self) -> datetime | None:
        """When the degradation began; None unless the series degrades."""
        return self.onset.at if self.onset else None

    @property
    def rate(self) -> float | None:
        """The degraded share, between 0 and 1; None of nothing, and where none go well."""
        return self.degraded / self.runs if self.has_rate and self.runs else None

    @property
    def interval(self) -> tuple[float, float] | None:
        return wilson_interval(self.degraded, self.runs) if self.has_rate and self.runs else None

    @property
    def has_rate(self) -> bool:
        """Whether anything is told that a rate can be made of."""
        return self.state is not SeriesState.NO_DATA

    @property
    def baseline(self) -> float | None:
        """The degraded share of the week before; None where nothing ran."""
        before = self.before.of(self.unit)
        return before.share if before.runs else None

    @property
    def is_judged(self) -> bool:
        """Whether there are runs enough to say how it stands."""
        return self.state not in UNJUDGED

    def touched_since(self, onset: SeriesOnset, counts: UnitCounts) -> "SeriesStatus":
        """Return it as degrading since a time, with what was counted since then."""
        counted = counts.of(self.unit)
        return replace(
            self,
            state=SeriesState.DEGRADING,
            onset=onset,
            runs=counted.runs,
            degraded=counted.degraded,
        )

    @property
    def rank(self) -> tuple[int, float]:
        """The place in a list of worst first: by state, then by the lower bound of the rate."""
        return ORDER[self.state], -(self.interval or (0.0, 0.0))[0]


def status_of(
    key: SeriesKey,
    at: datetime,
    day: UnitCounts,
    before: UnitCounts,
    detected: DetectedState | None = None,
) -> SeriesStatus:
    """Return how a series stands by its detector (None: it has none) and what it counted.

    Its unit are calls where they are told, as that of its detector.
    """
    chosen = day if any(bucket.runs for bucket in day) else before
    unit: Unit = "call" if chosen.calls.runs else "run"
    counted, onset = day.of(unit), detected.onset if detected else None
    fails = not (chosen.runs.runs or before.runs.runs) and _fail_only(day) and _fail_only(before)
    state = SeriesState.NO_DATA if fails else _state_of(counted, detected)
    if state is SeriesState.DEGRADING and detected:
        counted = detected.counted
    return SeriesStatus(
        key,
        at,
        state,
        onset if state is SeriesState.DEGRADING else None,
        counted.runs,
        counted.degraded,
        before,
        unit,
        _shown(state, unit, day, before),
        detected.anew_since if detected else None,
        detected.over if detected else None,
    )


def _shown(state: SeriesState, unit: Unit, day: UnitCounts, before: UnitCounts) -> Unit:
    if unit == "run" or not (day.runs.runs or before.runs.runs):
        return unit
    usual = wilson_interval(*_pair(before.runs))[1] if before.runs.runs else 0.0
    are_worse = day.runs.runs and wilson_interval(*_pair(day.runs))[0] > usual
    is_bad = state in {SeriesState.DEGRADING, SeriesState.WATCH}
    return "call" if is_bad and not are_worse else "run"


def _pair(counted: RunBucket) -> tuple[int, int]:
    return counted.degraded, counted.runs


def _state_of(day: RunBucket, detected: DetectedState | None) -> SeriesState:
    if detected and detected.onset:
        return SeriesState.DEGRADING
    if detected and detected.is_watched:
        return SeriesState.WATCH
    if day.runs < LEAST_TRIALS:
        return SeriesState.LOW_VOLUME if day.runs else SeriesState.NO_DATA
    return SeriesState.OK if detected else SeriesState.NOT_JUDGED


def _fail_only(counted: UnitCounts) -> bool:
    """Whether nothing goes well: senders of failing calls alone have no rate that could rise."""
    return counted.calls.degraded == counted.calls.runs

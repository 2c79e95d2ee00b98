"""How a series stands at a moment: one rule for pages, API, verdict, reports and metrics.

A status belongs to (series, unit, moment). It is judged on the 24 hours before the moment
against the week before them, whatever range a page shows. Thresholds: `docs/statistics.md`.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from diagnostics.analysis.onset import LEAST_POINTS, lasting_onset
from diagnostics.analysis.series import RunCurve, SeriesKey
from diagnostics.analysis.statistics import LEAST_TRIALS, wilson_interval
from diagnostics.store.windows import RunBucket

STATUS_SPAN = timedelta(hours=24)
NOTHING = RunBucket(0, 0)
MARGIN = 0.05
"""Points above its baseline below which a series does not degrade."""
FACTOR = 2
"""Times its baseline below which a series does not degrade."""
SURELY = 2.576
"""Of many rows one in two hundred is above its baseline by chance."""


Unit = Literal["run", "call"]


class SeriesState(StrEnum):
    """How a series stands, worst first; no data are also failures without any success."""

    DEGRADING = "degrading"
    WATCH = "watch"
    OK = "ok"
    LOW_VOLUME = "low_volume"
    NO_DATA = "no_data"


ORDER = {state: place for place, state in enumerate(SeriesState)}


@dataclass(frozen=True, slots=True)
class SeriesOnset:
    """Since when a series degrades, and the 95 % interval of that."""

    at: datetime
    low: datetime
    high: datetime


@dataclass(frozen=True, slots=True)
class SeriesStatus:
    """How one series stands at one moment.

    The counts are those since the onset; of the 24 hours before `at` where there is none.
    They are of runs, or of calls where only calls are told, or where calls stand worse.
    """

    key: SeriesKey
    at: datetime
    state: SeriesState
    onset: SeriesOnset | None
    runs: int
    degraded: int
    baseline_runs: int
    baseline_degraded: int
    unit: Unit = "run"
    other_baseline: RunBucket = NOTHING
    """The week before in the other unit: calls, with failed ones as degraded, or runs."""

    @property
    def since(self) -> datetime | None:
        """When the degradation began; None unless the series degrades."""
        return self.onset.at if self.onset else None

    @property
    def rate(self) -> float | None:
        """The degraded share, between 0 and 1; None of nothing, and where none go well."""
        return self.degraded / self.runs if self.has_rate else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the rate."""
        return wilson_interval(self.degraded, self.runs) if self.has_rate else None

    @property
    def has_rate(self) -> bool:
        """Whether anything is told that a rate can be made of."""
        return self.state is not SeriesState.NO_DATA

    @property
    def baseline(self) -> float | None:
        """The degraded share of the week before; None where nothing ran."""
        return self.baseline_degraded / self.baseline_runs if self.baseline_runs else None

    def baseline_in(self, unit: Unit) -> RunBucket:
        """Return the runs, or the calls, of the week before."""
        if unit != self.unit:
            return self.other_baseline
        return RunBucket(self.baseline_runs, self.baseline_degraded)

    @property
    def excess(self) -> float:
        """Degraded runs beyond those that the baseline explains; may be below 0."""
        return self.degraded - (self.baseline or 0.0) * self.runs

    @property
    def is_judged(self) -> bool:
        """Whether there are runs enough to say how it stands."""
        return self.state not in {SeriesState.LOW_VOLUME, SeriesState.NO_DATA}

    @property
    def rank(self) -> tuple[int, float]:
        """The place in a list of worst first: by state, then by the lower bound of the rate."""
        return ORDER[self.state], -(self.interval or (0.0, 0.0))[0]


def status_of(
    key: SeriesKey,
    at: datetime,
    curve: RunCurve,
    baseline: RunBucket,
    incident: SeriesOnset | None = None,
    since_incident: RunBucket | None = None,
    unit: Unit = "run",
) -> SeriesStatus:
    """Judge a series by its curve up to a moment; the onset of its incident wins over its own.

    A trouble of an hour is small over a day: the runs since the onset count as well. Those
    since an onset before the curve are given.
    """
    whole = curve.count_since(curve.since)
    usual = baseline.share if baseline.runs else None
    onset = incident or find_series_onset(curve, baseline)
    recent = since_incident or (curve.count_since(onset.at) if onset else whole)
    state, counted = SeriesState.DEGRADING, recent
    if unit == "call" and _only_fails(whole) and _only_fails(baseline):
        state = SeriesState.NO_DATA
    elif not is_degraded(recent, usual):
        state = state_of(whole, baseline)
    if state is not SeriesState.DEGRADING:
        counted, onset = whole, None
    return SeriesStatus(
        key,
        at,
        state,
        onset,
        counted.runs,
        counted.degraded,
        baseline.runs,
        baseline.degraded,
        unit,
    )


def _only_fails(counted: RunBucket) -> bool:
    """Whether nothing goes well: senders of failures alone have no rate that could rise."""
    return counted.degraded == counted.runs


def find_series_onset(curve: RunCurve, baseline: RunBucket) -> SeriesOnset | None:
    """Find since when the runs of a curve end worse than the baseline, and go on to."""
    usual = baseline.share if baseline.runs else None
    found = lasting_onset(curve.buckets, usual, baseline.runs)
    if found is None:
        return None
    return SeriesOnset(curve.begin(found.at), curve.begin(found.low), curve.begin(found.high + 1))


def is_degraded(seen: RunBucket, usual: float | None) -> bool:
    """Whether enough runs were seen, and the lower bound of their rate is above the bar."""
    low, _ = wilson_interval(seen.degraded, seen.runs)
    return seen.runs >= LEAST_TRIALS and low > bar_of(usual)


def bar_of(usual: float | None) -> float:
    """Return the rate above which a series is watched; a series without a baseline has 0."""
    base = usual or 0.0
    return max(FACTOR * base, base + MARGIN)


def state_of(seen: RunBucket, baseline: RunBucket) -> SeriesState:
    """Return the state that the counts of one stretch of time tell."""
    usual = baseline.share if baseline.runs else None
    if seen.runs < LEAST_TRIALS:
        return SeriesState.LOW_VOLUME if seen.runs else SeriesState.NO_DATA
    if is_degraded(seen, usual):
        return SeriesState.DEGRADING
    if seen.share > bar_of(usual) or _is_surely_above(seen, baseline):
        return SeriesState.WATCH
    return SeriesState.OK


def _is_surely_above(seen: RunBucket, baseline: RunBucket) -> bool:
    """Whether the rate is above its baseline beyond chance, if by less than the bar."""
    if baseline.runs < seen.runs:
        return False
    low, _ = wilson_interval(seen.degraded, seen.runs, SURELY)
    return low > baseline.share and seen.share >= baseline.share + LEAST_POINTS

"""The state of a series is that of now, however long the window."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from diagnostics.analysis.series import RatedSeries, RunCounts, RunCurve, SeriesState, SeriesStatus
from diagnostics.store.windows import RunBucket

SINCE = datetime(2026, 11, 21, tzinfo=UTC)
GOOD = RunBucket(15, 0)


def subject(runs: int, degraded: int, buckets: Sequence[RunBucket]) -> RatedSeries:
    counts = RunCounts(runs=runs, degraded=degraded, baseline_runs=1000, baseline_degraded=44)
    curve = RunCurve(SINCE, timedelta(minutes=15), buckets)
    return RatedSeries("anthropic/haiku", "plan", counts, curve=curve)


def test_a_fresh_incident_counts_in_a_long_window() -> None:
    assert subject(383, 47, []).state is SeriesState.WATCH
    fresh = subject(383, 47, [GOOD] * 19 + [RunBucket(40, 12), RunBucket(60, 20)])
    assert fresh.state is SeriesState.DEGRADING
    assert fresh.onset is not None
    assert fresh.onset.at == SINCE + timedelta(minutes=19 * 15)


def test_without_an_onset_the_window_decides() -> None:
    calm = subject(400, 16, [GOOD] * 26)
    assert calm.state is SeriesState.OK
    assert calm.standing is SeriesStatus.OK


def test_a_handful_of_runs_since_the_onset_is_not_judged() -> None:
    assert subject(400, 16, [GOOD] * 26 + [RunBucket(6, 5)]).state is SeriesState.OK

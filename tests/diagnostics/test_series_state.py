"""The state of a series is that of now, however long the window."""

from diagnostics.api.series import state_now
from diagnostics.core.onset import Bucket
from diagnostics.core.series import Counts, SeriesState, rate_series


def counts_of(runs: int, degraded: int) -> Counts:
    return Counts(
        runs=runs, degraded=degraded, baseline_runs=1000, baseline_degraded=44
    )


def test_a_fresh_incident_counts_in_a_long_window() -> None:
    rates = rate_series(counts_of(383, 47))
    assert rates.state is SeriesState.WATCH
    assert state_now(rates, [Bucket(40, 12), Bucket(60, 20)]) is SeriesState.DEGRADING


def test_without_an_onset_the_window_decides() -> None:
    rates = rate_series(counts_of(400, 16))
    assert state_now(rates, []) is rates.state is SeriesState.OK


def test_a_handful_of_runs_since_the_onset_is_not_judged() -> None:
    rates = rate_series(counts_of(400, 16))
    assert state_now(rates, [Bucket(6, 5)]) is SeriesState.OK

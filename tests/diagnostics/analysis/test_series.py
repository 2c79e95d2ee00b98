"""A series is judged against its own baseline, with the interval in mind."""

import pytest

from diagnostics.analysis.series import RunCounts, SeriesState, judge, rate_series, sort_worst_first

# degraded, runs, baseline, state
JUDGED = [
    (0, 0, 0.1, SeriesState.NO_DATA),
    (1, 100, 0.01, SeriesState.OK),
    (31, 100, 0.04, SeriesState.DEGRADING),
    (8, 100, 0.02, SeriesState.WATCH),  # the rate is above the bar, its bound is not
    (19, 19, 0.0, SeriesState.WATCH),  # all bad, but too few to say so
    (20, 20, None, SeriesState.DEGRADING),
    (30, 100, 0.25, SeriesState.OK),  # always this bad
    (70, 100, 0.25, SeriesState.DEGRADING),
]


@pytest.mark.parametrize(("degraded", "runs", "baseline", "state"), JUDGED)
def test_a_window_is_judged(
    degraded: int, runs: int, baseline: float | None, state: SeriesState
) -> None:
    assert judge(degraded, runs, baseline) is state


def test_rates_are_shares_of_runs() -> None:
    rates = rate_series(
        RunCounts(
            runs=100,
            degraded=10,
            first_pass=60,
            repaired=30,
            baseline_runs=200,
            baseline_degraded=4,
        )
    )
    assert rates.degraded_rate == 0.1
    assert rates.degraded_low is not None
    assert rates.degraded_high is not None
    assert rates.degraded_low < 0.1 < rates.degraded_high
    assert rates.baseline == 0.02
    assert rates.first_pass_rate == 0.6
    assert rates.repair_success_rate == 0.75


def test_what_was_not_counted_is_unknown_not_zero() -> None:
    rates = rate_series(RunCounts())
    assert rates.degraded_rate is rates.baseline is rates.first_pass_rate is None
    assert rate_series(RunCounts(runs=5, first_pass=5)).repair_success_rate is None


def test_the_worst_comes_first() -> None:
    ok = rate_series(RunCounts(runs=100, first_pass=100))
    bad = rate_series(RunCounts(runs=100, degraded=50))
    worse = rate_series(RunCounts(runs=100, degraded=90))
    none = rate_series(RunCounts())
    given = [(none, "none"), (ok, "ok"), (bad, "bad"), (worse, "worse")]
    assert [name for _, name in sort_worst_first(given)] == ["worse", "bad", "ok", "none"]

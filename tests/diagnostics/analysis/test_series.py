"""The counts of a window as rates."""

from diagnostics.analysis.series import RunCounts, rate_series


def test_rates_are_shares_of_runs_and_of_first_attempts() -> None:
    counts = RunCounts(runs=100, degraded=10, first_pass=60, repaired=30, first_attempts=120)
    rates = rate_series(counts)
    assert rates.degraded_rate == 0.1
    assert rates.degraded_low is not None
    assert rates.degraded_high is not None
    assert rates.degraded_low < 0.1 < rates.degraded_high
    assert rates.first_pass_rate == 0.5
    assert rates.repair_success_rate == 0.75


def test_what_was_not_counted_is_unknown_not_zero() -> None:
    rates = rate_series(RunCounts())
    assert rates.degraded_rate is rates.first_pass_rate is None
    assert rate_series(RunCounts(runs=5, first_pass=5)).repair_success_rate is None

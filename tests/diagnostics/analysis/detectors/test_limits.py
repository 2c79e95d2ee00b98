"""The detectors that compare with a limit: threshold, count, absent, burn."""

import pytest

from diagnostics.analysis.detectors.results import WindowCounts
from diagnostics.analysis.detectors.thresholds import (
    PACES,
    SHORT_SECONDS,
    BudgetError,
    Pace,
    capped_factor,
    check_budget,
    judge_absence,
    judge_burn,
    judge_count,
    judge_threshold,
    long_window,
    lower_bound,
)

BAD_MOMENT = WindowCounts(10, 3)


@pytest.mark.parametrize(
    ("calls", "least"),
    [(20, 5), (30, 5), (40, 6), (60, 7), (100, 11), (200, 18), (400, 31), (1000, 67)],
)
def test_the_least_failures_that_fire_at_five_percent(calls: int, least: int) -> None:
    assert not judge_threshold(0.05, WindowCounts(calls, least - 1), BAD_MOMENT).fires
    assert judge_threshold(0.05, WindowCounts(calls, least), BAD_MOMENT).fires


@pytest.mark.parametrize(
    ("failed", "calls", "bound", "fires"),
    [
        (4, 40, 0.0337, False),  # a tenth failed, but of few calls
        (7, 40, 0.0770, True),
        (40, 400, 0.0703, True),  # a tenth failed, of many calls
    ],
)
def test_the_worked_values_hold(failed: int, calls: int, bound: float, fires: bool) -> None:
    found = judge_threshold(0.05, WindowCounts(calls, failed), BAD_MOMENT)
    assert found.bound == pytest.approx(bound, abs=5e-5)
    assert found.fires is fires


def test_nineteen_calls_never_fire() -> None:
    assert not judge_threshold(0.05, WindowCounts(19, 19), BAD_MOMENT).fires


@pytest.mark.parametrize("moment", [WindowCounts(0, 0), WindowCounts(10, 0), WindowCounts(100, 4)])
def test_what_is_over_does_not_fire(moment: WindowCounts) -> None:
    assert not judge_threshold(0.05, WindowCounts(400, 40), moment).fires


def test_one_failure_of_few_calls_in_the_last_five_minutes_confirms() -> None:
    assert SHORT_SECONDS == 300
    assert judge_threshold(0.05, WindowCounts(400, 40), WindowCounts(10, 1)).fires


def test_it_clears_below_four_fifths_of_the_limit() -> None:
    assert not judge_threshold(0.05, WindowCounts(100, 5), BAD_MOMENT).clears
    assert judge_threshold(0.05, WindowCounts(1000, 39), BAD_MOMENT).clears
    assert not judge_threshold(0.05, WindowCounts(0, 0), WindowCounts(0, 0)).clears


def test_the_long_window_grows_until_it_holds_enough_calls() -> None:
    asked: list[int] = []

    def window(seconds: int) -> WindowCounts:
        asked.append(seconds)
        return WindowCounts(seconds // 120, 0)

    assert long_window(window) == WindowCounts(60, 0)
    assert asked == [900, 1800, 3600, 7200]


def test_a_quiet_series_is_judged_by_six_hours() -> None:
    assert long_window(lambda seconds: WindowCounts(seconds // 21600, 0)) == WindowCounts(1, 0)


def test_a_count_fires_at_its_number_and_clears_below_four_fifths() -> None:
    assert [judge_count(5, WindowCounts(9, k)).fires for k in (4, 5)] == [False, True]
    assert [judge_count(5, WindowCounts(9, k)).clears for k in (3, 4)] == [True, False]


def test_absence_fires_after_the_longest_silence() -> None:
    quiet = WindowCounts(0, 0)
    assert judge_absence(3601, 3600, quiet).fires
    assert judge_absence(3600, 3600, quiet).clears


def test_burn_needs_both_windows() -> None:
    pace = Pace(3600, 300, 6)
    much, little = WindowCounts(100, 40), WindowCounts(100, 10)
    assert judge_burn(0.05, pace, much, much).fires
    assert not judge_burn(0.05, pace, much, little).fires
    assert not judge_burn(0.05, pace, little, much).fires
    assert not judge_burn(0.05, pace, WindowCounts(19, 19), much).fires


@pytest.mark.parametrize("budget", [0.01, 0.05, 0.2, 0.49])
def test_no_pace_asks_for_more_than_half_of_the_calls(budget: float) -> None:
    assert all(budget * capped_factor(pace.factor, budget) <= 0.5 for pace in PACES)
    assert judge_burn(budget, PACES[0], WindowCounts(100, 90), WindowCounts(50, 45)).fires


@pytest.mark.parametrize("budget", [-0.1, 0.0, 0.5, 1.0])
def test_a_budget_that_nothing_could_burn_too_fast_is_refused(budget: float) -> None:
    with pytest.raises(BudgetError, match=r"below 0\.5"):
        check_budget(budget)


def test_the_bound_is_wilsons() -> None:
    assert lower_bound(WindowCounts(100, 0)) == 0.0

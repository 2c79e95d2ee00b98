"""The detectors that compare with a limit: threshold, count, absent."""

import pytest

from diagnostics.analysis.detectors.thresholds import (
    SHORT_SECONDS,
    WindowCounts,
    judge_absence,
    judge_count,
    judge_threshold,
    long_window,
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


def test_the_bound_is_wilsons() -> None:
    assert judge_threshold(0.05, WindowCounts(100, 0), BAD_MOMENT).bound == 0.0

"""The geometry of a share over time: places, gaps, intervals, ticks, marks, words."""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest

from diagnostics.store.windows import RunBucket
from diagnostics.web.charts.marks import Mark
from diagnostics.web.charts.series import (
    HEIGHT,
    MOST_MARKS,
    MOST_TICKS,
    WIDTH,
    Drawing,
    SeriesChart,
    Since,
    draw_series,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
FULL = (100, 5), (100, 10), (100, 40), (100, 20)


def drawn(*slots: tuple[int, int], zone: tzinfo = UTC, **fields: object) -> Drawing:
    chart = {
        "name": "calls",
        "title": "Failed calls",
        "since": NOON,
        "width": HOUR,
        "slots": [RunBucket(*slot) for slot in slots],
        **fields,
    }
    return draw_series(SeriesChart(**chart), zone)  # type: ignore[arg-type]


def test_a_share_stands_in_the_middle_of_its_slot_on_a_linear_axis() -> None:
    drawing = drawn(*FULL)
    assert [tick.label for tick in drawing.shares] == ["0", "10", "20", "30", "40"]
    assert drawing.line == (
        f"M125.0 {HEIGHT * 0.875}L375.0 {HEIGHT * 0.75}L625.0 0.0L875.0 {HEIGHT * 0.5}"
    )


def test_slots_without_trials_are_gaps() -> None:
    drawing = drawn((10, 1), (10, 1), (0, 0), (10, 1), (0, 0), (10, 1), (10, 1))
    assert drawing.line.count("M") == 2
    assert drawing.dots.count("M") == 1
    assert drawing.band.count("M") == drawing.band.count("Z") == 3
    assert drawing.points[2].share is None


def test_the_interval_is_wilsons_and_as_wide_as_the_slots() -> None:
    drawing = drawn((100, 10))
    point = drawing.points[0]
    assert (point.low, point.high) == pytest.approx((0.0552, 0.1744), abs=1e-4)
    assert drawing.band.startswith("M0.0 ")
    assert f"L{WIDTH:.1f} " in drawing.band


def test_the_axis_holds_the_baseline_too() -> None:
    drawing = drawn((100, 1), baseline=(0.3, 0.28, 0.32))
    assert drawing.shares[-1].label == "40"
    assert drawing.baseline_y == pytest.approx(HEIGHT * 0.25)
    assert drawing.baseline_box == pytest.approx((HEIGHT * 0.2, HEIGHT * 0.1))


@pytest.mark.parametrize("hours", [1, 3, 6, 24, 72, 168, 720, 24 * 395])
def test_ticks_of_time_are_few_and_round(hours: int) -> None:
    drawing = drawn((1, 0), since=NOON + timedelta(minutes=7), width=hours * HOUR)
    assert len(drawing.times) <= MOST_TICKS + 1
    assert all(0 <= tick.place <= 100 for tick in drawing.times)
    assert all(tick.at and not tick.at.second for tick in drawing.times)
    if hours <= 720:
        assert drawing.times


def test_ticks_of_time_are_round_in_the_readers_zone() -> None:
    kolkata = ZoneInfo("Asia/Kolkata")
    day = drawn((1, 0), since=NOON, width=24 * HOUR, zone=kolkata)
    week = drawn((1, 0), since=NOON, width=7 * 24 * HOUR, zone=kolkata)
    assert [tick.label for tick in day.times] == ["18:00", "00:00", "06:00", "12:00"]
    assert day.times[0].at == NOON + HOUR / 2
    assert {tick.at and tick.at.strftime("%H:%M") for tick in week.times} == {"18:30"}


def test_marks_are_numbered_from_the_left_and_those_outside_are_left_out() -> None:
    marks = [
        Mark(NOON - HOUR, "release", "before"),
        Mark(NOON + HOUR, "prompt", "v12"),
        Mark(NOON + 2 * HOUR, "incident", "one"),
        Mark(NOON + 4 * HOUR, "release", "after"),
    ]
    drawing = drawn(*FULL, marks=marks)
    assert [(flag.number, flag.x, flag.place) for flag in drawing.flags] == [
        (1, 250.0, 25.0),
        (2, 500.0, 50.0),
    ]


def test_too_many_marks_show_the_latest_and_say_so() -> None:
    marks = [Mark(NOON + n * timedelta(minutes=5), "prompt", "v") for n in range(25)]
    drawing = drawn(*FULL, marks=marks)
    assert len(drawing.flags) == MOST_MARKS
    assert drawing.unshown_marks == 25 - MOST_MARKS
    assert drawing.flags[-1].mark is marks[-1]


def test_the_onset_is_drawn_with_its_interval() -> None:
    since = Since(NOON + 2 * HOUR, NOON + HOUR, NOON + 3 * HOUR)
    drawing = drawn(*FULL, onset=since)
    assert drawing.onset_x == 500.0
    assert drawing.onset_box == (250.0, 500.0)
    assert "degrading since 2026-03-01 14:00 UTC" in drawing.text


def test_the_text_says_the_peak_the_end_and_the_baseline() -> None:
    text = drawn(*FULL, baseline=(0.04, 0.03, 0.05)).text.replace("\u202f", " ")
    assert text == (
        "Failed calls: highest 40.0 % of 100 calls at 2026-03-01 14:00 UTC,"
        " latest 20.0 % of 100 calls, baseline 4.0 %"
    )


@pytest.mark.parametrize("slots", [(), ((0, 0), (0, 0))], ids=["none", "empty"])
def test_nothing_is_drawn_of_nothing(slots: tuple[tuple[int, int], ...]) -> None:
    drawing = drawn(*slots)
    assert (drawing.line, drawing.dots, drawing.band) == ("", "", "")
    assert drawing.text == "Failed calls: no call in this time"

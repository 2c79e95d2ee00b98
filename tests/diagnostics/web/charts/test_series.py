"""The geometry of a share over time: places, gaps, intervals, ticks, marks, words."""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest

from diagnostics.analysis.series import SeriesOnset
from diagnostics.store.windows import RunBucket
from diagnostics.web.charts.series import (
    HEIGHT,
    MOST_MARKS,
    MOST_TICKS,
    WIDTH,
    Drawing,
    Mark,
    SeriesChart,
    draw_series,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
FULL = (100, 5), (100, 10), (100, 40), (100, 20)


def drawn(
    *slots: tuple[int, int], zone: tzinfo = UTC, now: datetime | None = None, **fields: object
) -> Drawing:
    chart = {
        "name": "calls",
        "title": "Failed calls",
        "since": NOON,
        "width": HOUR,
        "slots": [RunBucket(*slot) for slot in slots],
        "as_of": now,
        **fields,
    }
    return draw_series(SeriesChart(**chart), zone)  # type: ignore[arg-type]


def test_a_share_stands_in_the_middle_of_its_slot_on_a_linear_axis() -> None:
    drawing = drawn(*FULL)
    assert [tick.label for tick in drawing.shares] == ["0", "15", "30", "45", "60"]
    assert drawing.line == "M125.0 183.3L375.0 166.7L625.0 66.7L875.0 133.3"
    assert HEIGHT == 200
    assert min(point.high or 1 for point in drawing.points) <= 0.6, "no interval is cut"


def test_slots_without_trials_are_gaps() -> None:
    drawing = drawn((20, 1), (30, 1), (0, 0), (30, 1), (0, 0), (30, 1), (30, 1))
    assert drawing.line.count("M") == 2
    assert drawing.dots.count("M") == 1
    assert drawing.band.count("M") == drawing.band.count("Z") == 3
    assert drawing.points[2].share is None


def test_buckets_are_as_wide_as_a_rate_needs() -> None:
    """Seven runs in ten minutes swing from 0 to 66 %; forty in an hour show the step."""
    before, after = [(7, 0), (6, 1), (8, 0)], [(7, 4), (6, 1), (8, 3)]
    drawing = drawn(*(before * 12 + after * 12), width=HOUR / 6)
    assert drawing.chart.width == HOUR / 2
    assert {point.trials for point in drawing.points} == {21}
    shares = [round(point.share or 0, 2) for point in drawing.points]
    assert shares == [0.05] * 12 + [0.38] * 12


def test_a_wide_bucket_begins_at_a_round_time() -> None:
    since = NOON + timedelta(minutes=20)
    drawing = drawn(*[(5, 1)] * 40, since=since, width=HOUR / 6)
    assert drawing.chart.since == NOON
    assert drawing.chart.width == HOUR
    assert sum(point.trials for point in drawing.points) == 200


def test_buckets_of_few_are_not_drawn_but_in_the_table() -> None:
    drawing = drawn(*[(1, 1)] * 12)
    assert (drawing.line, drawing.dots, drawing.band) == ("", "", "")
    assert [point.trials for point in drawing.points] == [2] * 6
    assert drawing.text == "Failed calls: fewer than 5 calls per bucket"


def test_where_no_bucket_has_enough_all_but_the_smallest_are_drawn_with_wide_intervals() -> None:
    drawing = drawn(*[(9, 0)] * 4, *[(9, 5)] * 3, (2, 1), width=3 * HOUR)
    assert [point.high is not None for point in drawing.points] == [True] * 7 + [False]
    assert drawing.line.count("L") == 6
    assert drawing.points[0].high == pytest.approx(0.3, abs=0.01)


def test_a_rate_that_the_widest_buckets_carry_in_part_is_drawn_in_part() -> None:
    drawing = drawn(*[(1, 0)] * 24, *[(11, 1)] * 24, width=HOUR / 2)
    assert drawing.chart.width == 3 * HOUR
    assert [point.trials for point in drawing.points] == [6] * 4 + [66] * 4
    assert drawing.line.count("L") == 3


def test_the_bucket_that_is_not_over_is_hatched_and_a_dot_beside_the_line() -> None:
    drawing = drawn(*FULL, now=NOON + 3.5 * HOUR)
    assert drawing.dots == "M875.0 133.3h0"
    assert drawing.unfinished == (750.0, 250.0)
    assert drawing.line.count("L") == 2
    assert drawing.points[-1].trials == 100
    assert drawn(*FULL, now=NOON + 4 * HOUR).unfinished is None


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


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        # The clocks go back: each of the later ticks was an hour before its midnight.
        ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
        ("Pacific/Chatham", datetime(2026, 9, 26, 14, tzinfo=UTC)),  # forwards, 12:45 to 13:45
        ("Africa/Cairo", datetime(2026, 4, 23, 22, tzinfo=UTC)),  # forwards at midnight
    ],
)
@pytest.mark.parametrize("days", [1, 2, 7, 30])
def test_ticks_stay_round_and_in_order_when_the_clocks_change(
    zone: str, change: datetime, days: int
) -> None:
    since, reader = change - timedelta(days=days / 2), ZoneInfo(zone)
    ticks = drawn((1, 0), since=since, width=timedelta(days=days), zone=reader).times
    at = [tick.at for tick in ticks if tick.at]
    assert at == sorted(set(at))
    local = [moment.astimezone(reader) for moment in at]
    assert {moment.minute for moment in local} == {0}
    is_daily = ":" not in ticks[0].label
    hours = {moment.hour % (24 if is_daily else 2) for moment in local}
    # Where an hour is left out, its tick is where the clocks go on.
    assert hours <= ({0, 1} if zone == "Africa/Cairo" else {0})
    labels = [tick.label for tick in ticks]
    assert len(labels) == len(set(labels)) or not is_daily


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
    since = SeriesOnset(NOON + 2 * HOUR, NOON + HOUR, NOON + 3 * HOUR)
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

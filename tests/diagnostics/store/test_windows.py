"""A window is made of whole rows, each moment in exactly one."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.store.windows import HOURS_KEPT, Grain, align, align_to, floor, kept_of

NOW = datetime(2026, 11, 22, 14, 32, 7, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
KOLKATA = ZoneInfo("Asia/Kolkata")


def told(since: datetime, until: datetime, finest: Grain = Grain.MINUTE) -> list[str]:
    window = align(since, until, NOW, finest)
    return [f"{part.grain} {part.since:%d %H:%M} {part.until:%d %H:%M}" for part in window.segments]


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        # An hour: minutes up to the full hour, then the hour that goes on.
        (HOUR, ["minute 22 13:32 22 14:00", "hour 22 14:00 22 15:00"]),
        (3 * HOUR, ["minute 22 11:32 22 12:00", "hour 22 12:00 22 15:00"]),
        # A day: as exact.
        (DAY, ["minute 21 14:32 21 15:00", "hour 21 15:00 22 15:00"]),
        # A week: its minutes are gone.
        (7 * DAY, ["hour 15 14:00 16 00:00", "day 16 00:00 22 00:00", "hour 22 00:00 22 15:00"]),
    ],
)
def test_a_range_that_ends_now(ago: timedelta, expected: list[str]) -> None:
    assert told(NOW - ago, NOW) == expected


def test_each_edge_is_as_exact_as_its_own_time_is_kept() -> None:
    # Three days in Kolkata, of which only the last end has minutes.
    since = datetime(2026, 11, 18, 18, 30, tzinfo=UTC)
    assert told(since, since + 3 * DAY) == [
        "hour 18 18:00 19 00:00",
        "day 19 00:00 21 00:00",
        "hour 21 00:00 21 18:00",
        "minute 21 18:00 21 18:30",
    ]
    assert told(since, since + 3 * DAY, Grain.HOUR)[-1] == "hour 21 00:00 21 18:00"


def test_what_lies_within_one_row_is_told_by_that_row() -> None:
    since = NOW - 3 * DAY
    assert told(since, since + timedelta(minutes=10)) == ["hour 19 14:00 19 15:00"]
    assert told(since, since + HOUR) == ["hour 19 14:00 19 15:00"]


def test_what_is_older_than_its_hours_is_told_by_days() -> None:
    assert align(NOW - 63 * DAY, NOW, NOW).since == floor(NOW - 63 * DAY, HOUR)
    old = align(NOW - 500 * DAY, NOW - 499 * DAY, NOW)
    assert (old.finest, old.since) == (Grain.DAY, floor(NOW - 500 * DAY, DAY))


def test_a_past_hour_ends_where_it_was_asked_to() -> None:
    until = NOW - HOUR
    assert align(until - HOUR, until, NOW).until == floor(until, timedelta(minutes=1))


def test_the_baseline_ends_where_the_window_begins() -> None:
    window = align(NOW - HOUR, NOW, NOW)
    before = window.before(7 * DAY)
    assert before.until == window.since
    assert before.since == datetime(2026, 11, 15, tzinfo=UTC)


times = st.integers(0, 70 * 24 * 60).map(lambda minutes: NOW - timedelta(minutes=minutes))
finest = st.sampled_from([Grain.MINUTE, Grain.HOUR])


@given(times, times, finest)
def test_segments_join_and_lie_on_kept_rows(one: datetime, other: datetime, finest: Grain) -> None:
    since, until = sorted([one, other])
    window = align(since, until, NOW, finest)
    at = window.since
    for part in window.segments:
        width = {Grain.MINUTE: timedelta(minutes=1), Grain.HOUR: HOUR, Grain.DAY: DAY}[part.grain]
        assert part.since == at < part.until
        assert floor(part.since, width) == part.since
        assert floor(part.until, width) == part.until
        if part.grain is Grain.MINUTE:
            assert finest is Grain.MINUTE
            assert kept_of(part.since, NOW) is Grain.MINUTE
        at = part.until
    assert at == window.until


@given(st.integers(0, 500), st.integers(1, 8), finest)
def test_days_that_follow_each_other_share_no_row_and_leave_none_out(
    ago: int, count: int, finest: Grain
) -> None:
    last = datetime(2026, 11, 22, tzinfo=KOLKATA) - ago * DAY
    midnights = [(last - place * DAY).astimezone(UTC) for place in range(count, -1, -1)]
    days = [align(since, until, NOW, finest) for since, until in pairwise(midnights)]
    whole = align(midnights[0], midnights[-1], NOW, finest)
    assert all(one.until == other.since for one, other in pairwise(days))
    assert (days[0].since, days[-1].until) == (whole.since, whole.until)
    hours = [(day.in_hours, other.in_hours) for day, other in pairwise(days)]
    assert all(one.until == other.since for one, other in hours)


def test_days_meet_where_their_hours_end_to_be_kept() -> None:
    edge = NOW - HOURS_KEPT
    day = align(edge - 3 * HOUR, edge + 22 * HOUR, NOW)
    assert day.until == align(edge + 22 * HOUR, NOW, NOW).since


def test_a_window_of_one_grain_is_widened_to_it() -> None:
    window = align_to(Grain.HOUR, NOW, NOW + HOUR)
    assert (window.since.hour, window.until.hour) == (14, 16)

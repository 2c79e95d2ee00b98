"""A window is made of whole rows, each moment in exactly one."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.store.windows import WIDTHS, Grain, align, align_to, ceil, floor

NOW = datetime(2026, 11, 22, 14, 32, 7, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def told(since: datetime, until: datetime) -> list[str]:
    window = align(since, until, NOW)
    return [f"{part.grain} {part.since:%d %H:%M} {part.until:%d %H:%M}" for part in window.segments]


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        # An hour: minutes up to the full hour, then the hour that goes on.
        (HOUR, ["minute 22 13:32 22 14:00", "hour 22 14:00 22 15:00"]),
        (3 * HOUR, ["minute 22 11:32 22 12:00", "hour 22 12:00 22 15:00"]),
        # A day: whole hours.
        (DAY, ["hour 21 14:00 22 15:00"]),
        # A week: hours at the edges.
        (7 * DAY, ["hour 15 14:00 16 00:00", "day 16 00:00 22 00:00", "hour 22 00:00 22 15:00"]),
    ],
)
def test_a_range_that_ends_now(ago: timedelta, expected: list[str]) -> None:
    assert told(NOW - ago, NOW) == expected


def test_what_is_older_than_its_minutes_is_told_by_hours() -> None:
    since = NOW - 3 * DAY
    assert told(since, since + HOUR) == ["hour 19 14:00 19 16:00"]


def test_long_and_very_old_stretches_are_told_by_days() -> None:
    assert align(NOW - 63 * DAY, NOW, NOW).finest is Grain.DAY
    assert align(NOW - 500 * DAY, NOW - 499 * DAY, NOW).finest is Grain.DAY


def test_a_past_hour_ends_where_it_was_asked_to() -> None:
    until = NOW - HOUR
    assert align(until - HOUR, until, NOW).until == ceil(until, WIDTHS[Grain.MINUTE])


def test_the_baseline_ends_where_the_window_begins() -> None:
    window = align(NOW - HOUR, NOW, NOW)
    before = window.before(7 * DAY)
    assert before.until == window.since
    assert before.since == datetime(2026, 11, 15, tzinfo=UTC)


times = st.integers(0, 70 * 24 * 60).map(lambda minutes: NOW - timedelta(minutes=minutes))


@given(times, times)
def test_segments_join_and_lie_on_their_grain(one: datetime, other: datetime) -> None:
    since, until = sorted([one, other])
    window = align(since, until, NOW)
    assert window.since <= since
    assert window.until >= until
    at = window.since
    for part in window.segments:
        assert part.since == at < part.until
        assert floor(part.since, WIDTHS[part.grain]) == part.since
        assert floor(part.until, WIDTHS[part.grain]) == part.until
        at = part.until
    assert at == window.until


def test_a_window_of_one_grain_is_widened_to_it() -> None:
    window = align_to(Grain.HOUR, NOW, NOW + HOUR)
    assert (window.since.hour, window.until.hour) == (14, 16)

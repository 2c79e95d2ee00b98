"""Which slots a stretch of time is looked at in: exact at its ends, closer where it tells more."""

from datetime import UTC, datetime, timedelta

import pytest

from diagnostics.store.windows import Grain
from diagnostics.verdict.curves import Stretch, VerdictRange, closer_look, stretch_of

NOW = datetime(2026, 11, 22, 14, 32, 7, tzinfo=UTC)
MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("minutes", "hours", "days"))


def asked(span: timedelta, ago: timedelta = timedelta(0)) -> VerdictRange:
    return VerdictRange(NOW - ago - span, NOW - ago, NOW)


@pytest.mark.parametrize(
    ("span", "width"),
    [
        (HOUR, 10 * MINUTE),
        (DAY, 10 * MINUTE),
        (3 * DAY, HOUR),
        (7 * DAY, HOUR),
        (30 * DAY, DAY),
        (90 * DAY, DAY),
    ],
)
def test_the_longer_the_stretch_the_wider_its_slots(span: timedelta, width: timedelta) -> None:
    stretch = stretch_of(asked(span))
    assert stretch.width == width
    assert stretch.count <= 200


def test_slots_of_days_take_in_nothing_before_or_after_what_is_asked() -> None:
    stretch = stretch_of(asked(30 * DAY, ago=2 * DAY))
    since, until = NOW - 32 * DAY, NOW - 2 * DAY
    assert stretch.window.since == since.replace(minute=0, second=0)
    assert stretch.window.until == until.replace(minute=0, second=0)
    assert stretch.begin(0) == stretch.window.since
    assert stretch.begin(1) == datetime(2026, 10, 22, tzinfo=UTC)
    assert stretch.end(stretch.count - 1) >= stretch.window.until
    assert stretch.window.finest is Grain.HOUR


def test_around_the_days_of_an_onset_hours_are_looked_at() -> None:
    stretch = stretch_of(asked(90 * DAY))
    hours = stretch.around(40, 41)
    assert hours is not None
    assert hours.width == HOUR
    assert hours.window.since == stretch.begin(37)
    assert hours.window.until == stretch.begin(46)


def test_hours_around_an_onset_stay_within_what_is_asked() -> None:
    stretch = stretch_of(asked(90 * DAY))
    first, last = stretch.around(0, 0), stretch.around(stretch.count - 1, 90)
    assert first is not None
    assert last is not None
    assert first.window.since == stretch.window.since
    assert last.window.until == stretch.window.until


def test_an_onset_that_lies_anywhere_in_weeks_is_not_looked_at_by_the_hour() -> None:
    assert stretch_of(asked(90 * DAY)).around(10, 30) is None
    assert stretch_of(asked(7 * DAY)).around(3, 3) is None


def looked(used: Stretch, earliest: datetime | None) -> Stretch | None:
    return closer_look(asked(90 * DAY), used, earliest)


def test_where_days_show_nothing_the_last_two_are_looked_at_closely() -> None:
    days = stretch_of(asked(90 * DAY))
    closer = looked(days, None)
    assert closer is not None
    assert closer.width == 10 * MINUTE
    assert closer.window.since <= NOW - 46 * HOUR
    assert looked(closer, None) is None


def test_an_old_onset_is_looked_at_once_and_a_late_one_closer() -> None:
    days = stretch_of(asked(90 * DAY))
    assert looked(days, NOW - 20 * DAY) is None
    closer = looked(days, NOW - 20 * HOUR)
    assert closer is not None
    assert closer.width == 10 * MINUTE

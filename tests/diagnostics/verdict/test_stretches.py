"""Which slots a stretch of time is looked at in: exact at its ends, closer where it tells more."""

from datetime import UTC, datetime, timedelta

import pytest

from diagnostics.store.windows import Grain
from diagnostics.verdict.curves import VerdictRange, stretch_of

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
    assert stretch.end(stretch.count - 1) == stretch.window.until
    assert stretch.window.finest is Grain.HOUR


def test_every_slot_of_a_stretch_that_reaches_ahead_of_the_clock_has_a_width() -> None:
    stretch = stretch_of(VerdictRange(NOW - HOUR, NOW + HOUR, NOW))
    slots = [(stretch.begin(slot), stretch.end(slot)) for slot in range(stretch.count)]
    assert all(begin < end for begin, end in slots)
    (running,) = [end for begin, end in slots if begin < NOW <= end]
    assert running == NOW

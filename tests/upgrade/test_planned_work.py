"""Maintenance windows of an older version, as silences."""

from datetime import UTC, datetime, timedelta
from importlib import import_module
from types import SimpleNamespace

import pytest

next_stretch = import_module("diagnostics.migrations.0002_since_0_1_0").next_stretch
# Local time in Berlin goes back an hour in the night to 25 October 2026.
FRIDAY = datetime(2026, 10, 23, 20, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("repeats", "upgraded", "begins"),
    [
        ("once", -DAY, FRIDAY),
        ("daily", -DAY, FRIDAY),
        ("daily", HOUR / 2, FRIDAY),
        ("daily", 2 * HOUR, FRIDAY + DAY),
        # The same local time is an hour later from Sunday on.
        ("daily", DAY + 2 * HOUR, FRIDAY + 2 * DAY + HOUR),
        ("weekly", 2 * HOUR, FRIDAY + 7 * DAY + HOUR),
        ("weekly", 15 * DAY, FRIDAY + 21 * DAY + HOUR),
    ],
)
def test_the_next_time_of_a_window_keeps_its_local_time(
    repeats: str, upgraded: timedelta, begins: datetime
) -> None:
    window = SimpleNamespace(
        starts_at=FRIDAY, ends_at=FRIDAY + HOUR, repeats=repeats, zone="Europe/Berlin"
    )
    assert next_stretch(window, FRIDAY + upgraded) == (begins, begins + HOUR)


def test_a_window_that_was_once_and_is_over_stays_over() -> None:
    window = SimpleNamespace(
        starts_at=FRIDAY, ends_at=FRIDAY + HOUR, repeats="once", zone="Europe/Berlin"
    )
    assert next_stretch(window, FRIDAY + DAY)[1] < FRIDAY + DAY

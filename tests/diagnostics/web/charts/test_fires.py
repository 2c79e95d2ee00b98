"""Alarms of a back-test as bars: placed by time, never too narrow, ticks that fit."""

from datetime import UTC, datetime, timedelta

from diagnostics.web.charts.strips import FIRES_WIDTH, NARROWEST, fires

UNTIL = datetime(2026, 7, 31, 12, tzinfo=UTC)
SINCE = UNTIL - timedelta(days=30)


def test_bars_stand_where_and_as_long_as_it_fired() -> None:
    day = timedelta(days=1)
    found = fires(
        [(SINCE + 15 * day, SINCE + 18 * day), (UNTIL - timedelta(minutes=1), None)], SINCE, UNTIL
    )
    assert [(bar.x, bar.width) for bar in found.cells] == [
        (150, 30),
        (FIRES_WIDTH - NARROWEST, NARROWEST),
    ]
    assert found.cells[0].label == "16 Jul 12:00 to 19 Jul 12:00 UTC"
    assert found.cells[1].label.endswith("to now UTC")
    assert [tick.label for tick in found.ticks] == ["2 Jul", "9 Jul", "16 Jul", "23 Jul"]


def test_without_alarms_it_says_so() -> None:
    assert fires([], SINCE, UNTIL).text == "no alarm"

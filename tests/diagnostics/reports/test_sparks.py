"""Sparklines of block characters."""

from datetime import timedelta

import pytest

from diagnostics.reports.curves import MOST_SLOTS, slot_count, slot_width, sparkline
from diagnostics.store.windows import RunBucket

LINES = {
    "nothing": ([], ""),
    "no run": ([(0, 0), (0, 0)], "··"),
    "healthy": ([(10, 0), (0, 0), (10, 0)], "▁·▁"),
    "the largest is the top": ([(10, 0), (10, 5), (10, 10)], "▁▅█"),
    "noise is not trouble": ([(1000, 1), (1000, 0)], "▁▁"),
    "five per cent is the least top": ([(1000, 50), (1000, 25)], "█▅"),
}
SPANS = {
    "a day": (24, 1, 24),
    "a day of 23 hours": (23, 1, 23),
    "a day of 25 hours": (25, 1, 25),
    "a half hour more": (24.5, 1, 24),
    "a weekend": (72, 3, 24),
    "a week": (168, 6, 28),
    "a week with a change": (169, 6, 28),
    "a month": (31 * 24, 24, 31),
    "a month with a change": (31 * 24 + 1, 48, 16),
    "a year": (8760, 168, 31),
}


@pytest.mark.parametrize(("pairs", "expected"), LINES.values(), ids=LINES)
def test_blocks_show_the_share(pairs: list[tuple[int, int]], expected: str) -> None:
    assert sparkline([RunBucket(*pair) for pair in pairs]) == expected


@pytest.mark.parametrize(("hours", "width", "slots"), SPANS.values(), ids=SPANS)
def test_a_period_has_a_readable_number_of_slots(hours: float, width: int, slots: int) -> None:
    span = timedelta(hours=hours)
    assert slot_width(span) == timedelta(hours=width)
    assert slot_count(span) == slots <= MOST_SLOTS

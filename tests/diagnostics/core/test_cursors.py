"""Cursors of lists: what was written is read, anything else is refused."""

from datetime import UTC, datetime

import pytest

from diagnostics.core.cursors import (
    BadCursorError,
    read_count_cursor,
    read_cursor,
    write_count_cursor,
    write_cursor,
)

AT = datetime(2026, 11, 21, 14, 32, 7, 120_000, tzinfo=UTC)


def test_a_time_and_a_key_come_back() -> None:
    assert read_cursor(write_cursor(AT, 12)) == (AT, "12")


@pytest.mark.parametrize("count", [0, 7, -7, 10**17])
def test_a_count_and_a_key_come_back(count: int) -> None:
    assert read_count_cursor(write_count_cursor(count, 12)) == (count, "12")


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "\N{SNOWMAN}",
        "A" * 999,
        write_cursor(AT.replace(tzinfo=None), 1),
        write_cursor(AT, ""),
        write_count_cursor(1, ""),
    ],
)
def test_a_cursor_of_ones_own_is_refused(cursor: str) -> None:
    with pytest.raises(BadCursorError):
        read_cursor(cursor)
    with pytest.raises(BadCursorError):
        read_count_cursor(cursor)


def test_cursors_of_one_order_are_none_of_another() -> None:
    with pytest.raises(BadCursorError):
        read_count_cursor(write_cursor(AT, 1))
    with pytest.raises(BadCursorError):
        read_cursor(write_count_cursor(5, 1))
    with pytest.raises(BadCursorError):
        read_count_cursor(write_count_cursor(10**18, 1))

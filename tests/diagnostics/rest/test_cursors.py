"""Cursors of lists: what was written is read, anything else is refused."""

from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from uuid import UUID

import pytest

from diagnostics.rest.cursors import (
    BadCursorError,
    read_count_cursor,
    read_cursor,
    read_key,
    write_count_cursor,
    write_cursor,
)

AT = datetime(2026, 11, 21, 14, 32, 7, 120_000, tzinfo=UTC)
ID = UUID("019aa0b2-5d4e-7a31-9a3c-0d6f8c1d2e4a")


def encode(text: str) -> str:
    """Write a cursor as somebody would who knows how they are made."""
    return urlsafe_b64encode(text.encode()).decode()


def test_a_time_and_a_key_come_back() -> None:
    assert read_cursor(write_cursor(AT, 12), int) == (AT, 12)
    assert read_cursor(write_cursor(AT, ID), UUID) == (AT, ID)


@pytest.mark.parametrize("count", [0, 7, -7, 10**17])
def test_a_count_and_a_key_come_back(count: int) -> None:
    assert read_count_cursor(write_count_cursor(count, 12)) == (count, 12)


def test_a_time_in_another_zone_is_read_as_utc() -> None:
    cursor = encode("2026-11-22T19:00:00+23:59|1")
    assert read_cursor(cursor, int) == (datetime(2026, 11, 21, 19, 1, tzinfo=UTC), 1)


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "\N{SNOWMAN}",
        "A" * 999,
        encode("\0|1"),
        # No time, no offset, or a time beyond what a query can count with.
        encode("1"),
        write_cursor(AT.replace(tzinfo=None), 1),
        encode("0001-01-01T00:00:00+14:00|1"),
        encode("9999-12-31T23:59:59.999999+00:00|1"),
        encode("9999-12-31T23:59:59-14:00|1"),
        # A key that no row has.
        write_cursor(AT, ""),
        write_cursor(AT, -1),
        write_cursor(AT, "1_0"),
        write_cursor(AT, "\N{ARABIC-INDIC DIGIT ONE}"),
        write_cursor(AT, 2**63),
        write_cursor(AT, "9" * 5000),
    ],
)
def test_a_cursor_of_ones_own_is_refused(cursor: str) -> None:
    with pytest.raises(BadCursorError):
        read_cursor(cursor, int)
    with pytest.raises(BadCursorError):
        read_count_cursor(cursor)
    with pytest.raises(BadCursorError):
        read_key(cursor, int)


def test_a_key_of_the_other_kind_is_refused() -> None:
    with pytest.raises(BadCursorError):
        read_cursor(write_cursor(AT, 1), UUID)
    with pytest.raises(BadCursorError):
        read_cursor(write_cursor(AT, ID), int)


def test_cursors_of_times_and_of_counts_are_not_the_same() -> None:
    with pytest.raises(BadCursorError):
        read_count_cursor(write_cursor(AT, 1))
    with pytest.raises(BadCursorError):
        read_cursor(write_count_cursor(5, 1), int)
    with pytest.raises(BadCursorError):
        read_count_cursor(write_count_cursor(10**18, 1))

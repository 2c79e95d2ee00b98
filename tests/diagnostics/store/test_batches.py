"""Deleting batch by batch: all there is, in bounded time."""

from collections.abc import Callable

import pytest

from diagnostics.store import sql
from diagnostics.store.sql import delete_in_batches


def deleting(rows: int, asked: list[int]) -> Callable[[int], int]:
    """Delete from so many rows; `asked` keeps how many were allowed each time."""
    left = rows

    def delete(most: int) -> int:
        nonlocal left
        asked.append(most)
        gone = min(most, left)
        left -= gone
        return gone

    return delete


@pytest.mark.parametrize(
    ("rows", "statements"),
    [
        (0, 1),
        (2, 1),
        (3, 2),  # a full batch: there may be more
        (7, 3),
        (900, 301),  # however many there are
    ],
)
def test_all_rows_go_and_no_statement_takes_more_than_a_batch(rows: int, statements: int) -> None:
    asked: list[int] = []
    assert delete_in_batches(deleting(rows, asked), 3) == rows
    assert asked == [3] * statements


def test_what_is_left_when_the_time_is_over_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "MOST_SECONDS", 0.0)
    assert delete_in_batches(deleting(7, []), 3) == 3

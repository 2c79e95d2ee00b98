"""Deleting what is old, a batch at a time: no statement and no task grows with the backlog."""

from collections.abc import Callable
from time import monotonic

MOST_SECONDS = 20.0
"""Then what is left waits for the next time: other work stands in the same queue."""


def delete_in_batches(delete: Callable[[int], int], batch: int) -> int:
    """Delete until a batch is not full any more or the time is over; gives how many.

    `delete` is told how many rows it may delete at most, and gives how many it did.
    """
    total, end = 0, monotonic() + MOST_SECONDS
    while True:
        deleted = delete(batch)
        total += deleted
        if deleted < batch or monotonic() >= end:
            return total

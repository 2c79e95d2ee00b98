"""Deleting what is old, a batch at a time: no statement and no task grows with the backlog."""

from collections.abc import Callable
from datetime import datetime
from time import monotonic
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from psycopg import sql

MOST_SECONDS = 20.0
"""Then what is left waits for the next time: other work stands in the same queue."""
DELETE = sql.SQL(
    "DELETE FROM {table} WHERE ctid = ANY(ARRAY("
    "SELECT ctid FROM {table} WHERE {column} < %s LIMIT %s))"
)


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


def delete_oldest(rows: QuerySet[Any], column: str, batch: int) -> int:
    """Delete rows, the oldest by a column first, with all that hangs on them."""
    by_age = rows.order_by(column).values_list("pk", flat=True)
    every = rows.model._default_manager

    def delete(most: int) -> int:
        return int(every.filter(pk__in=list(by_age[:most])).delete()[0])

    return delete_in_batches(delete, batch)


def delete_before(table: str, column: str, before: datetime, batch: int) -> int:
    """Delete what is older from a table on which nothing hangs, in no order."""
    names = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
    text = DELETE.format(**names)

    def delete(most: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute(text, [before, most])
            return int(cursor.rowcount)

    return delete_in_batches(delete, batch)

"""Retention periods, and the size of tables.

Old days and months are dropped as partitions. Rows in a default partition, with implausible
times, are deleted. There is one setting per installation and table.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from psycopg import sql

from diagnostics import clock
from diagnostics.store.partitions import LOCK_KEY, LOCK_TIMEOUT, TABLES, PartitionedTable, read_name
from diagnostics.store.sql import change, fetch, statement

MOST_SECONDS = 20.0
"""The rest waits for the next run, since the queue has other work."""
DELETE = sql.SQL(
    "DELETE FROM {table} WHERE ctid = ANY(ARRAY("
    "SELECT ctid FROM {table} WHERE {column} < %s LIMIT %s))"
)


def delete_in_batches(delete: Callable[[int], int], batch: int) -> int:
    """Delete until a batch is not full or the time is over; return how many.

    `delete` takes the largest number of rows to delete, and returns how many it did.
    """
    total, end = 0, monotonic() + MOST_SECONDS
    while True:
        deleted = delete(batch)
        total += deleted
        if deleted < batch or monotonic() >= end:
            return total


def delete_oldest(rows: QuerySet[Any], column: str, batch: int) -> int:
    """Delete rows, the oldest by a column first, with their dependants."""
    by_age = rows.order_by(column).values_list("pk", flat=True)
    every = rows.model._default_manager

    def delete(limit: int) -> int:
        return int(every.filter(pk__in=list(by_age[:limit])).delete()[0])

    return delete_in_batches(delete, batch)


def delete_before(table: str, column: str, before: datetime, batch: int) -> int:
    """Delete older rows from a table without dependants, in no particular order."""
    names = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
    text = DELETE.format(**names)

    return delete_in_batches(lambda limit: change(text, [before, limit]), batch)


BATCH = 20_000
MONTH = timedelta(days=365.25 / 12)
GROWING = ("diagnostics_event", "diagnostics_event_payload")


@dataclass(frozen=True, slots=True)
class StorageSize:
    """The size of a table with its partitions and indexes."""

    table: str
    bytes: int
    rows: int
    """The planner's estimate."""
    partitions: int


def kept_spans() -> Mapping[str, timedelta]:
    """Return how long the rows of each partitioned table are kept."""
    hours = settings.FAILSOFT_KEEP_HOUR_MONTHS * MONTH
    return {
        "diagnostics_event": timedelta(days=settings.FAILSOFT_KEEP_EVENT_DAYS),
        "diagnostics_event_payload": timedelta(days=settings.FAILSOFT_KEEP_PAYLOAD_DAYS),
        "diagnostics_rollup_minute": timedelta(hours=settings.FAILSOFT_KEEP_MINUTE_HOURS),
        "diagnostics_rollup_hour": hours,
        "diagnostics_rollup_hour_by_version": hours,
        "diagnostics_group_hour": hours,
        # Days by version can be as many as hours, so they are dropped with their hours.
        "diagnostics_rollup_day_by_version": hours,
        "diagnostics_group_day": hours,
    }


def drop_old() -> list[str]:
    """Drop the partitions that ended before the retention period; return their names.

    Rows in default partitions are deleted, batch by batch.
    """
    now, spans = clock.now(), kept_spans()
    dropped: list[str] = []
    for table in TABLES:
        before = now - spans[table.name]
        names = [name for name, end in _partitions(table) if end <= before]
        dropped += [name for name in names if _drop(name)]
        delete_before(f"{table.name}_default", table.column, before, BATCH)
    return dropped


def storage_sizes() -> Sequence[StorageSize]:
    """Return the size of each table, largest first."""
    return [StorageSize(*row) for row in fetch(statement("storage_sizes"))]


def daily_growth_bytes(now: datetime) -> int:
    """Return the mean size of a day of events and details, over the last full week."""
    since, until = now - timedelta(days=8), now - timedelta(days=1)
    names = [
        name
        for table in TABLES
        if table.name in GROWING
        for name, end in _partitions(table)
        if since < end <= until
    ]
    sizes = (
        "SELECT coalesce(sum(pg_total_relation_size(name::regclass)), 0)"
        " FROM unnest(%s::text[]) AS name"
    )
    ((total,),) = fetch(sizes, [names])
    return int(total) // 7


def leaves_of(table: str) -> list[str]:
    """Return the partitions of a table, or the table itself if it has none."""
    leaves = "SELECT relid::regclass::text FROM pg_partition_tree(%s::regclass) WHERE isleaf"
    return [name for (name,) in fetch(f"{leaves} ORDER BY 1", [table])] or [table]


def _partitions(table: PartitionedTable) -> Iterator[tuple[str, datetime]]:
    for name in leaves_of(table.name):
        if parsed := read_name(name):
            yield name, parsed[1].end


def _drop(name: str) -> bool:
    """Drop one partition; waits for readers up to 5 s, else it is tried again an hour later."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [name])
        if not cursor.fetchone()[0]:
            return False
        cursor.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))
    return True

"""What is kept for how long, and how much room it takes.

Old days and months are dropped whole; what lies in a default partition, because its time
was implausible, is deleted. One figure per installation and table.
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

    return delete_in_batches(lambda most: change(text, [before, most]), batch)


BATCH = 20_000
MONTH = timedelta(days=365.25 / 12)
GROWING = ("diagnostics_event", "diagnostics_event_payload")


@dataclass(frozen=True, slots=True)
class StorageSize:
    """Room on disk of a table with all its partitions and indexes."""

    table: str
    bytes: int
    rows: int
    """Estimated, as the planner sees it."""
    partitions: int


def kept_spans() -> Mapping[str, timedelta]:
    """Say how long the rows of each partitioned table are kept."""
    hours = settings.FAILSOFT_KEEP_HOUR_MONTHS * MONTH
    return {
        "diagnostics_event": timedelta(days=settings.FAILSOFT_KEEP_EVENT_DAYS),
        "diagnostics_event_payload": timedelta(days=settings.FAILSOFT_KEEP_PAYLOAD_DAYS),
        "diagnostics_rollup_minute": timedelta(hours=settings.FAILSOFT_KEEP_MINUTE_HOURS),
        "diagnostics_rollup_hour": hours,
        "diagnostics_rollup_hour_by_version": hours,
        "diagnostics_group_hour": hours,
        # Days by version are as many as there are versions: they go with their hours.
        "diagnostics_rollup_day_by_version": hours,
        "diagnostics_group_day": hours,
    }


def drop_old() -> list[str]:
    """Drop the partitions whose last moment is older than what is kept; gives their names.

    Rows in default partitions are deleted, batch by batch.
    """
    now, kept = clock.now(), kept_spans()
    dropped: list[str] = []
    for table in TABLES:
        before = now - kept[table.name]
        names = [name for name, end in _partitions(table) if end <= before]
        dropped += [name for name in names if _drop(name)]
        delete_before(f"{table.name}_default", table.column, before, BATCH)
    return dropped


def storage_sizes() -> Sequence[StorageSize]:
    """Return the room each table takes, largest first."""
    return [StorageSize(*row) for row in fetch(statement("storage_sizes"))]


def daily_growth_bytes(now: datetime) -> int:
    """Return what a day of events and their details took, on average of the last whole week."""
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
    """Return the partitions of a table, or the table itself where it has none."""
    leaves = "SELECT relid::regclass::text FROM pg_partition_tree(%s::regclass) WHERE isleaf"
    return [name for (name,) in fetch(f"{leaves} ORDER BY 1", [table])] or [table]


def _partitions(table: PartitionedTable) -> Iterator[tuple[str, datetime]]:
    for name in leaves_of(table.name):
        if named := read_name(name):
            yield name, named[1].end


def _drop(name: str) -> bool:
    """Drop one partition; waits for readers at most 5 s, an hour later it is tried again."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [name])
        if not cursor.fetchone()[0]:
            return False
        cursor.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))
    return True

"""Retention periods, indexes of words, and the size of tables.

Old days and months are dropped as partitions. Rows in a default partition, with implausible
times, are deleted. There is one setting per installation and table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from psycopg import sql

from diagnostics import clock
from diagnostics.store.partitions import TABLES, PartitionedTable, changing_tables, read_name
from diagnostics.store.sql import (
    DETAIL_TEXTS,
    MOST_SECONDS,
    change,
    delete_before,
    fetch,
    is_own,
    statement,
    text_of_event,
)

BATCH = 20_000
DAY = timedelta(days=1)
MONTH = timedelta(days=365.25 / 12)
GROWING = ("diagnostics_event", "diagnostics_event_payload")


@dataclass(frozen=True, slots=True)
class StorageSize:
    table: str
    bytes: int
    rows: int
    """The planner's estimate."""
    partitions: int


def _kept_spans() -> Mapping[str, timedelta]:
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
    now, spans = clock.now(), _kept_spans()
    dropped: list[str] = []
    for table in TABLES:
        before = now - spans[table.name]
        names = [name for name, end in _partitions(table) if end <= before]
        dropped += [name for name in names if _drop(name)]
        delete_before(f"{table.name}_default", table.column, before, BATCH)
    return dropped


_WORDS = "upper({}) gin_trgm_ops"
# What a search for words reads of failures, by table: as columns of an index.
WORDS = {
    "diagnostics_event_payload": f"({', '.join(map(_WORDS.format, DETAIL_TEXTS))})",
    "diagnostics_event": f"({_WORDS.format(text_of_event())}) WHERE kind <> 'succeeded'",
}
TRIGRAMS = "CREATE EXTENSION IF NOT EXISTS pg_trgm"
WORD_DAYS = 8
"""Words are searched in at most 7 days, which the last of them may have begun."""
WORDS_LOCK_KEY = 7_316_402_102
MOST_INDEXED = 2**30
"""Bytes of a day: about a million failures."""
INDEXED = """
SELECT index.relname, pg_index.indisvalid
FROM pg_index JOIN pg_class AS index ON index.oid = pg_index.indexrelid
WHERE index.relname LIKE '%%\\_words' AND index.relnamespace = current_schema::regnamespace
"""


def index_words() -> list[str]:
    """Index the words of the last full days, and drop older indexes; return the new ones.

    Of days that are over, since an index of trigrams costs more than storing a failure; as many
    as the time allows. One process at a time: another would take an index that is being built
    for a broken one. Without the extension pg_trgm, behind a pooler, and of larger days than a
    task has time for, a search reads the rows.
    """
    try:
        # It is there, or this role can create it.
        with transaction.atomic():
            change(TRIGRAMS)
    except DatabaseError:
        return []
    if (
        not is_own(connection.connection)
        or not fetch("SELECT pg_try_advisory_lock(%s)", [WORDS_LOCK_KEY])[0][0]
    ):
        return []
    try:
        return _index_words()
    finally:
        fetch("SELECT pg_advisory_unlock(%s)", [WORDS_LOCK_KEY])


def _index_words() -> list[str]:
    now, end = clock.now(), monotonic() + MOST_SECONDS
    wanted = {
        f"{name}_words": (name, columns)
        for table in TABLES
        if (columns := WORDS.get(table.name))
        for name, until in _partitions(table)
        if now - WORD_DAYS * DAY < until <= now
    }
    known = dict(fetch(INDEXED, []))
    built: list[str] = []
    with connection.cursor() as cursor:
        for name, is_valid in known.items():
            if name not in wanted or not is_valid:
                cursor.execute(_write("DROP INDEX CONCURRENTLY IF EXISTS {}", name))
        # The newest first, which most searches read.
        for name in sorted(wanted, reverse=True):
            if known.get(name) or monotonic() >= end:
                continue
            leaf, columns = wanted[name]
            if fetch("SELECT pg_relation_size(%s::regclass)", [leaf])[0][0] > MOST_INDEXED:
                continue
            text = f"CREATE INDEX CONCURRENTLY {{}} ON {{}} USING gin {columns}"
            cursor.execute(_write(text, name, leaf))
            # The planner knows how rare a word is from the index's own statistics.
            cursor.execute(_write("ANALYZE {}", leaf))
            built.append(name)
    return built


def _write(text: str, *names: str) -> sql.Composed:
    return sql.SQL(text).format(*map(sql.Identifier, names))


def storage_sizes() -> Sequence[StorageSize]:
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
    with changing_tables() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [name])
        if not cursor.fetchone()[0]:
            return False
        cursor.execute(_write("DROP TABLE {}", name))
    return True

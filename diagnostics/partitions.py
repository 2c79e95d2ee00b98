"""Day partitions of the event tables: made ahead, so that recording never does (X-16).

A row outside the days that exist lands in the default partition and is moved when its
day is made.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta

from django.db import connection, transaction
from psycopg import sql

from diagnostics import clock

DAYS_BACK = 14
DAYS_AHEAD = 3
TABLES = ("diagnostics_event", "diagnostics_event_payload")
# Any number of processes may maintain; one at a time creates.
LOCK_KEY = 7_316_402_101
LOCK_TIMEOUT = "5s"


def ensure_partitions(
    first_day: date | None = None, last_day: date | None = None
) -> list[str]:
    """Create the missing partitions from `first_day` to `last_day`, both included.

    Without arguments: 14 days back to 3 days ahead (UTC). Returns the names created.
    """
    today = clock.now().astimezone(UTC).date()
    first = first_day or today - timedelta(days=DAYS_BACK)
    last = last_day or today + timedelta(days=DAYS_AHEAD)
    wanted = _missing(first, last)
    return [partition_name(*pair) for pair in wanted if _create(*pair)]


def are_days_ready() -> bool:
    """Say whether today and tomorrow have their partitions."""
    today = clock.now().astimezone(UTC).date()
    return not _missing(today, today + timedelta(days=1))


def partition_name(table: str, day: date) -> str:
    """Name the partition of a day: `<table>_d20261121`."""
    return f"{table}_d{day:%Y%m%d}"


def _days(first: date, last: date) -> Iterator[date]:
    for offset in range((last - first).days + 1):
        yield first + timedelta(days=offset)


def _missing(
    first: date, last: date, tables: Sequence[str] = TABLES
) -> list[tuple[str, date]]:
    wanted = {
        partition_name(table, day): (table, day)
        for day in _days(first, last)
        for table in tables
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM unnest(%s::text[]) AS name"
            " WHERE to_regclass(name) IS NULL ORDER BY name",
            [list(wanted)],
        )
        return [wanted[name] for (name,) in cursor.fetchall()]


def _create(table: str, day: date) -> bool:
    """Build the day beside the table, move its rows out of the default, attach it."""
    name = partition_name(table, day)
    start = datetime.combine(day, time.min, tzinfo=UTC)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])
        if not _missing(day, day, (table,)):
            return False
        for statement in _statements(table, name, start, start + timedelta(days=1)):
            cursor.execute(statement)
    return True


def _statements(
    table: str, name: str, start: datetime, end: datetime
) -> Iterator[sql.Composed]:
    words = {
        "table": sql.Identifier(table),
        "day": sql.Identifier(name),
        "rest": sql.Identifier(f"{table}_default"),
        "start": sql.Literal(start.isoformat()),
        "end": sql.Literal(end.isoformat()),
    }
    for text in (
        "LOCK TABLE {rest} IN ACCESS EXCLUSIVE MODE",
        "CREATE TABLE {day} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)",
        "WITH moved AS (DELETE FROM {rest} WHERE occurred_at >= {start}"
        " AND occurred_at < {end} RETURNING *) INSERT INTO {day} SELECT * FROM moved",
        "ALTER TABLE {table} ATTACH PARTITION {day} FOR VALUES FROM ({start}) TO ({end})",
    ):
        yield sql.SQL(text).format(**words)

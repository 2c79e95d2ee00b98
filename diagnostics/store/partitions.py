"""Partitions of events and rollups, created ahead so that recording never has to.

A row outside the existing periods lands in the default partition and is moved when its period
is created.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from diagnostics import clock
from diagnostics.store.sql import fetch

NAME = re.compile(r"(?P<table>.+)_(?P<unit>[dm])(?P<digits>[0-9]{6,8})")


class Unit(StrEnum):
    DAY = "d"
    MONTH = "m"


@dataclass(frozen=True, slots=True)
class PartitionPeriod:
    """One day or one month (UTC), named by its first day."""

    unit: Unit
    first: date

    @property
    def suffix(self) -> str:
        """The end of a partition's name: `d20261121` or `m202611`."""
        form = "%Y%m%d" if self.unit is Unit.DAY else "%Y%m"
        return f"{self.unit}{self.first:{form}}"

    @property
    def begin(self) -> datetime:
        return datetime.combine(self.first, time.min, tzinfo=UTC)

    @property
    def end(self) -> datetime:
        return datetime.combine(self.next().first, time.min, tzinfo=UTC)

    def next(self) -> "PartitionPeriod":
        if self.unit is Unit.DAY:
            return PartitionPeriod(self.unit, self.first + timedelta(days=1))
        return period_of(self.unit, self.first.replace(day=28) + timedelta(days=4))


def period_of(unit: Unit, day: date) -> PartitionPeriod:
    return PartitionPeriod(unit, day if unit is Unit.DAY else day.replace(day=1))


def periods(unit: Unit, first: date, last: date) -> Iterator[PartitionPeriod]:
    period = period_of(unit, first)
    while period.first <= last:
        yield period
        period = period.next()


def read_name(name: str) -> tuple[str, PartitionPeriod] | None:
    """Return the table and period that a partition's name means; None for any other name."""
    match = NAME.fullmatch(name)
    if match is None:
        return None
    digits = match["digits"] if match["unit"] == Unit.DAY else match["digits"] + "01"
    try:
        first = datetime.strptime(digits, "%Y%m%d").replace(tzinfo=UTC).date()
    except ValueError:
        return None
    return match["table"], PartitionPeriod(Unit(match["unit"]), first)


DAYS_BACK = 14
DAYS_AHEAD = 3
# Any number of processes may run; one at a time creates.
LOCK_KEY = 7_316_402_101
LOCK_TIMEOUT = "5s"
# Counters need free space in their page, to be updated in place.
COUNTED_UP = 80
FULL = 100


@dataclass(frozen=True, slots=True)
class PartitionedTable:
    name: str
    column: str
    unit: Unit
    days_back: int = DAYS_BACK
    fillfactor: int = FULL


TABLES = (
    PartitionedTable("diagnostics_event", "occurred_at", Unit.DAY),
    PartitionedTable("diagnostics_event_payload", "occurred_at", Unit.DAY),
    PartitionedTable("diagnostics_rollup_minute", "bucket", Unit.DAY, 2, COUNTED_UP),
    *(
        PartitionedTable(name, "bucket", Unit.MONTH, fillfactor=COUNTED_UP)
        for name in (
            "diagnostics_rollup_hour",
            "diagnostics_rollup_hour_by_version",
            "diagnostics_group_hour",
            "diagnostics_rollup_day_by_version",
            "diagnostics_group_day",
        )
    ),
)
Wanted = tuple[PartitionedTable, PartitionPeriod]
CREATE = (
    "LOCK TABLE {rest} IN ACCESS EXCLUSIVE MODE",
    "CREATE TABLE {part} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
    " WITH (fillfactor = {fill})",
    "WITH moved AS (DELETE FROM {rest} WHERE {column} >= {begin}"
    " AND {column} < {end} RETURNING *) INSERT INTO {part} SELECT * FROM moved",
    "ALTER TABLE {table} ATTACH PARTITION {part} FOR VALUES FROM ({begin}) TO ({end})",
)


def ensure_partitions(first_day: date | None = None, last_day: date | None = None) -> list[str]:
    """Create the missing partitions from `first_day` to `last_day`, both included.

    Without arguments: 14 days back (minutes: 2) to 3 days ahead (UTC). Return the created
    names.
    """
    today = _today()
    last = last_day or today + timedelta(days=DAYS_AHEAD)
    needed = [
        (table, period)
        for table in TABLES
        for period in periods(table.unit, _first(table, today, first_day), last)
    ]
    return [partition_name(*pair) for pair in _missing(needed) if _create(*pair)]


def are_days_ready() -> bool:
    """Whether today and tomorrow have their partitions."""
    days = (_today(), _today() + timedelta(days=1))
    needed = [(table, period_of(table.unit, day)) for table in TABLES for day in days]
    return not _missing(needed)


def partition_name(table: PartitionedTable, period: PartitionPeriod) -> str:
    return f"{table.name}_{period.suffix}"


def _today() -> date:
    return clock.now().astimezone(UTC).date()


def _first(table: PartitionedTable, today: date, requested: date | None) -> date:
    """Return the first day to create: minutes that are not kept need no partition."""
    default = today - timedelta(days=table.days_back)
    if requested is None or table.days_back >= DAYS_BACK:
        return requested or default
    return max(requested, default)


def _missing(needed: list[Wanted]) -> list[Wanted]:
    by_name = {partition_name(*pair): pair for pair in needed}
    unknown = (
        "SELECT name FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NULL ORDER BY 1"
    )
    return [by_name[name] for (name,) in fetch(unknown, [list(by_name)])]


@contextmanager
def changing_tables() -> Iterator[CursorWrapper]:
    """Change tables in a transaction, one process at a time; waits for readers up to 5 s."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])
        yield cursor


def _create(table: PartitionedTable, period: PartitionPeriod) -> bool:
    """Create the period, move its rows out of the default partition, and attach it."""
    words = {
        "table": sql.Identifier(table.name),
        "part": sql.Identifier(partition_name(table, period)),
        "rest": sql.Identifier(f"{table.name}_default"),
        "column": sql.Identifier(table.column),
        "fill": sql.Literal(table.fillfactor),
        "begin": sql.Literal(period.begin.isoformat()),
        "end": sql.Literal(period.end.isoformat()),
    }
    with changing_tables() as cursor:
        if not _missing([(table, period)]):
            return False
        for text in CREATE:
            cursor.execute(sql.SQL(text).format(**words))
    return True

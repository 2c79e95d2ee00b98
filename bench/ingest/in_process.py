"""Our path without HTTP, and its floor: COPY of the very rows it wrote, as ready bytes."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from django.db import connection
from psycopg import sql

from bench.ingest.measuring import cpu_of
from diagnostics.ingest.recording import record
from diagnostics.rest.batches import read_events, read_items
from failsoft.events import PostedEvent

TABLES = (
    "diagnostics_eventidentity",
    "diagnostics_event",
    "diagnostics_event_payload",
    "diagnostics_rollup_delta",
    "diagnostics_group_delta",
)
FLOOR_PROJECT = 999_999


class InProcess:
    """One connection; CPU is this process and its PostgreSQL backend."""

    def __init__(self, url: str, project_id: int) -> None:
        """Connect; `project_id` is ours, the floor writes to another."""
        self._project_id = project_id
        self._floor = psycopg.connect(url, autocommit=True)
        self._marks = {"diagnostics_rollup_delta": 0, "diagnostics_group_delta": 0}
        connection.ensure_connection()
        self._backend = _pid_of(connection.connection)
        self._floor_backend = _pid_of(self._floor)
        with self._floor.cursor() as cursor:
            cursor.execute(
                "INSERT INTO diagnostics_project (id, slug, name)"
                " VALUES (%s, 'floor', 'Floor') ON CONFLICT DO NOTHING",
                [FLOOR_PROJECT],
            )

    def store(self, bodies: Sequence[bytes]) -> tuple[float, float]:
        """Read, check, redact and store bodies, each committed; CPU seconds here and there."""

        def work() -> None:
            for body in bodies:
                events = read_events(read_items(body), body)
                record(self._project_id, [e for e in events if isinstance(e, PostedEvent)])

        return _cpu_of(work, self._backend)

    def copy(self, event_ids: Sequence[Sequence[str]]) -> float:
        """COPY the rows that `store` wrote for these batches, each committed; CPU seconds."""
        ready = [self._dump(ids) for ids in event_ids]

        def work() -> None:
            for tables in ready:
                self._load(tables)

        return sum(_cpu_of(work, self._floor_backend))

    def note_deltas(self) -> None:
        """Remember where the delta rows of the next batches begin."""
        for table in self._marks:
            query = sql.SQL("SELECT coalesce(max(id), 0) FROM {}")
            row: Any = self._floor.execute(query.format(sql.Identifier(table))).fetchone()
            self._marks[table] = row[0]

    def _dump(self, ids: Sequence[str]) -> dict[str, tuple[list[str], bytes]]:
        return {table: self._rows_of(table, ids) for table in TABLES}

    def _rows_of(self, table: str, ids: Sequence[str]) -> tuple[list[str], bytes]:
        columns = [name for name in self._columns(table) if name != "id"]
        told = sql.SQL(", ").join(
            sql.Literal(FLOOR_PROJECT) if name == "project_id" else sql.Identifier(name)
            for name in columns
        )
        if table in self._marks:
            # A batch is one statement, which appends one row a series and minute.
            where = sql.SQL("id > {} ORDER BY id LIMIT {}").format(
                sql.Literal(self._marks[table]), sql.Literal(max(len(ids) // 20, 1))
            )
        else:
            where = sql.SQL("project_id = {} AND event_id = ANY({})").format(
                sql.Literal(self._project_id), sql.Literal(list(ids))
            )
        query = sql.SQL("COPY (SELECT {} FROM {} WHERE {}) TO STDOUT").format(
            told, sql.Identifier(table), where
        )
        with self._floor.cursor() as cursor, cursor.copy(query) as out:
            return columns, b"".join(bytes(part) for part in out)

    def _columns(self, table: str) -> list[str]:
        rows = self._floor.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass"
            " AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [table],
        )
        return [name for (name,) in rows.fetchall()]

    def _load(self, tables: dict[str, tuple[list[str], bytes]]) -> None:
        with self._floor.transaction(), self._floor.cursor() as cursor:
            for table, (columns, ready) in tables.items():
                if not ready:
                    continue
                named = sql.SQL(", ").join(map(sql.Identifier, columns))
                text = sql.SQL("COPY {} ({}) FROM STDIN")
                query = text.format(sql.Identifier(table), named)
                with cursor.copy(query) as into:
                    into.write(ready)


def _pid_of(link: Any) -> int:  # noqa: ANN401 - a psycopg connection
    return int(link.info.backend_pid)


def _cpu_of(work: Callable[[], None], backend: int) -> tuple[float, float]:
    """Give the CPU time of this process and of a backend."""
    here, there = time.process_time(), cpu_of(backend)
    work()
    return time.process_time() - here, cpu_of(backend) - there

"""Plain SQL, one statement per file, read once; prepared per connection where it pays.

And deleting in batches, for rows of any age or number.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.db.transaction import on_commit
from psycopg import Connection, RawCursor, sql
from pydantic_core import to_json

from diagnostics.store.rollups import (
    COUNTS,
    LATENCY_BOUNDS_MS,
    MEASURES,
    PLAIN,
    SERIES,
    SUMS,
    VERSION,
)
from diagnostics.store.windows import AHEAD, LATE

# Each feature has its statements in a folder of its own; names are unique. All are read when the
# process starts: one that serves many requests may have no file left to open.
TEXTS = {
    path.stem: path.read_text("utf-8").strip()
    for path in Path(__file__).parents[3].glob("*/*/sql/*.sql")
}
# The bound of an integer column, so that no count can make the fold fail.
MOST = 2_147_483_647
FAILURES = "<<failures>>"
# The columns of an event that are stored as they are.
EVENT_COLUMNS = (
    *("event_id", "occurred_at", "kind", "correlation_id", "cycle", "attempt", "attempts"),
    *(*SERIES, *VERSION, "parse_error_type", "reason", "status"),
    *("finish_reason", "output_mode", "latency_ms", "input_tokens", "output_tokens", "time_mark"),
    *("call_error_type", "is_simplified", "upstream", "system_fingerprint"),
    *("reasoning_tokens", "unchecked", "is_altered"),
)
# The counts of a run, and all that is summed over its events.
RUN_COUNTS = (
    *("calls", "ok_first", "recovered", "unchecked", "degraded", "cancelled"),
    *("input_tokens", "output_tokens"),
)
RUN_COLUMNS = ("began_at", "ended_at", "attempts", *RUN_COUNTS, "nodes", "called_models", "kinds")
# The columns that a run takes from its deciding event, and the limits of its lists of names.
RUN_NAMES = ("provider", "model", "environment", "source", "release", "prompt_version", "schema")
MOST_NAMES = 8
MOST_KINDS = 24
# One condition per line; continuation lines are indented.
LINE = re.compile(r"\n(?! )")


def _measure_events() -> Mapping[str, str]:
    bounds = pairwise((-1, *LATENCY_BOUNDS_MS, MOST))
    within = (f"is_call AND latency_ms > {low} AND latency_ms <= {high}" for low, high in bounds)
    conditions = (*LINE.split(TEXTS["measures"]), *within)
    counts = {
        name: f"count(*) FILTER (WHERE {condition})"
        if name in PLAIN
        else f"nullif(count(*) FILTER (WHERE {condition}), 0)"
        for name, condition in zip((*PLAIN, *COUNTS), conditions, strict=True)
    }
    return {**counts, **dict(zip(SUMS, LINE.split(TEXTS["sums_of_events"]), strict=True))}


MEASURES_OF_EVENTS = _measure_events()
"""How each measure is counted from rows of events: by conditions, then the sums."""


def _total_of(name: str) -> str:
    if name in SUMS:
        return f"sum({name})::bigint"
    # `least` ignores nulls: without any count it would return the bound.
    total = f"least(coalesce(sum({name}), 0), {MOST})"
    return total if name in PLAIN else f"nullif({total}, 0)"


def _sum_of(name: str) -> str:
    if name in PLAIN:
        return f"{name} = least(kept.{name}::bigint + excluded.{name}, {MOST})"
    total = f"coalesce(kept.{name}, 0)::bigint + coalesce(excluded.{name}, 0)"
    return f"{name} = nullif({total if name in SUMS else f'least({total}, {MOST})'}, 0)"


def _net_of(name: str) -> str:
    total = f"coalesce(sum(sign * {name}), 0)"
    return total if name in PLAIN else f"nullif({total}, 0)"


def _each(write: Callable[[str], str]) -> str:
    return ", ".join(map(write, MEASURES))


def _joined_names(name: str, limit: int = MOST_NAMES) -> str:
    """Return the union of two lists of names; cheap if all are there already."""
    distinct = 'array_agg(DISTINCT name COLLATE "C" ORDER BY name COLLATE "C")'
    names = f"unnest(kept.{name} || excluded.{name}) AS name"
    joined = f"(SELECT ({distinct})[1:{limit}] FROM {names})"  # noqa: S608 - our own names
    return f"CASE WHEN kept.{name} @> excluded.{name} THEN kept.{name} ELSE {joined} END"


def _decided() -> str:
    """Take the names of the deciding event: the latest that names a model."""
    keys = ("{0}.model IS NOT NULL", "{0}.decided_at", "{0}.decided_by")
    new, old = (", ".join(keys).format(row) for row in ("excluded", "kept"))
    names = ("decided_at", "decided_by", *RUN_NAMES)
    return ", ".join(
        f"{name} = CASE WHEN ({new}) > ({old}) THEN excluded.{name} ELSE kept.{name} END"
        for name in names
    )


MARKS: Mapping[str, str] = {
    "<<ahead>>": f"interval '{AHEAD}'",
    "<<late>>": f"interval '{LATE}'",
    "<<kept>>": f"interval '{settings.FAILSOFT_KEEP_EVENT_DAYS} days'",
    FAILURES: TEXTS["record_failures"],
    "<<runs>>": TEXTS["record_runs"],
    "<<call_columns>>": TEXTS["call_columns"],
    "<<newest_events>>": TEXTS["newest_events"],
    "<<run_sums>>": TEXTS["run_sums"],
    "<<taken>>": TEXTS["taken"],
    "<<series>>": ", ".join(SERIES),
    "<<series_of_delta>>": ", ".join(f"delta.{name}" for name in SERIES),
    "<<version>>": ", ".join(VERSION),
    "<<version_of_delta>>": ", ".join(f"delta.{name}" for name in VERSION),
    "<<event_columns>>": ", ".join(EVENT_COLUMNS),
    "<<run_columns>>": ", ".join(RUN_COLUMNS),
    "<<summed_columns>>": ", ".join(f"summed.{name}" for name in RUN_COLUMNS),
    "<<added_run_counts>>": ", ".join(
        f"{name} = kept.{name} + excluded.{name}" for name in RUN_COUNTS
    ),
    "<<most_names>>": str(MOST_NAMES),
    "<<most_kinds>>": str(MOST_KINDS),
    "<<run_names>>": ", ".join(RUN_NAMES),
    "<<run_decided>>": _decided(),
    "<<deciding_names>>": ", ".join(f"deciding.{name}" for name in RUN_NAMES),
    "<<joined_nodes>>": _joined_names("nodes"),
    "<<joined_called_models>>": _joined_names("called_models"),
    "<<joined_kinds>>": _joined_names("kinds", MOST_KINDS),
    "<<measures>>": ", ".join(MEASURES_OF_EVENTS.values()),
    "<<columns>>": _each(str),
    "<<summed>>": _each(_total_of),
    "<<added>>": _each(_sum_of),
    "<<totalled>>": _each("{0} = coalesce(kept.{0}, 0) + coalesce(excluded.{0}, 0)".format),
    "<<totals>>": _each("total.{}".format),
    "<<totalled_sums>>": _each("coalesce(sum({0}), 0)::bigint AS {0}".format),
    "<<net>>": _each(_net_of),
    "<<negated>>": _each("-{}".format),
}


@cache
def statement(name: str, without: str = "") -> str:
    """Return `<name>.sql` with marks like `<<columns>>` replaced by the measures of a rollup.

    The part that `without` marks is left out.
    """
    text = TEXTS[name].replace(without, "")
    for mark, part in MARKS.items():
        text = text.replace(mark, part)
    return text


def fill(name: str, **parts: str) -> str:
    """Return `<name>.sql` with the caller's parts in place of their marks, one after the other."""
    text = statement(name)
    for mark, part in parts.items():
        text = text.replace(f"<<{mark}>>", part)
    return text


def fetch(text: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a statement, planned for these values."""
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return list(cursor.fetchall())


def change(text: str | sql.Composable, values: Mapping[str, Any] | Sequence[Any] = ()) -> int:
    """Run a statement; return how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return int(cursor.rowcount)


# Planning a statement costs several times as much as storing a small batch.
GENERIC = "SELECT set_config('plan_cache_mode', 'force_generic_plan', false)"
ONCE = 0
NAMED = re.compile(r"%\((\w+)\)s|%%")


# The connections that were set to keep their plans.
_PREPARED = WeakSet[Connection[Any]]()
_OWN: WeakKeyDictionary[Connection[Any], bool] = WeakKeyDictionary()


def is_own(server: Connection[Any]) -> bool:
    """Return whether one process of the database serves a connection until it is closed.

    A pooler may give each transaction another one, whose session is not ours: settings, prepared
    statements and locks of the session would be others'. It tells process ids of its own.
    """
    if server not in _OWN:
        row = server.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
        _OWN[server] = row == (server.info.backend_pid,)
    return _OWN[server]


def execute(name: str, params: Mapping[str, Any], without: str = "") -> list[tuple[Any, ...]]:
    """Run `<name>.sql`, without a part, in the caller's transaction; return its rows."""
    return execute_prepared(statement(name, without), params)


def execute_prepared(text: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run a statement in the caller's transaction; return its rows.

    Values are bound by the server and the statement is prepared, with one plan for all
    values, which Django's own cursor does not do. Behind a pooler nothing is prepared.
    """
    connection.ensure_connection()
    server = connection.connection
    numbered, names = number_places(text)
    # Django's own cursor writes values into the text, which is never prepared; psycopg's own
    # parses a long text every time.
    with connection.wrap_database_errors, RawCursor(server) as cursor:
        is_prepared = is_own(server)
        if is_prepared and server not in _PREPARED:
            cursor.execute(GENERIC)
            # Django turns preparing off; its own cursors never prepare.
            server.prepare_threshold = ONCE
            # A rollback undoes the setting.
            on_commit(partial(_PREPARED.add, server))
        cursor.execute(numbered, [params[name] for name in names], prepare=is_prepared)
        return list(cursor.fetchall()) if cursor.description else []


def insert_rows(
    table: str, rows: Sequence[Mapping[str, object]], conflict: str = "DO NOTHING"
) -> None:
    """Insert rows with the same columns in one statement, as their JSON: models cost much more."""
    if rows:
        columns = ", ".join(rows[0])
        read = f"json_populate_recordset(NULL::{table}, %(rows)s)"
        text = (
            f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {read} ON CONFLICT {conflict}"  # noqa: S608 - our own names
        )
        execute_prepared(text, {"rows": to_json(rows).decode()})


@cache
def number_places(text: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the text with `%(name)s` as $1, $2, ..., and the names in order."""
    names: list[str] = []

    def place(match: re.Match[str]) -> str:
        if match[1] is None:
            return "%"
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    return NAMED.sub(place, text).encode(), tuple(names)


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
    text = DELETE.format(table=sql.Identifier(table), column=sql.Identifier(column))
    return delete_in_batches(lambda limit: change(text, [before, limit]), batch)


# What a search for words reads of an event and its details, as their indexes have it.
SEARCHED = ("correlation_id", "provider", "model", "source", "reason", "node")
DETAIL_TEXTS = ("raw_output_preview", "tool", "original_error_type", "validation_errors::text")


def text_of_event(of: str = "") -> str:
    """Return the searched columns of an event, or of the table `of`, as one text of SQL."""
    return " || E'\\x1f' || ".join(f"coalesce({of}{name}, '')" for name in SEARCHED)

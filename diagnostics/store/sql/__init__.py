"""Plain SQL, one statement a file, read once; prepared once a connection where it pays."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from weakref import WeakSet

from django.db import connection
from django.db.transaction import on_commit
from psycopg import Connection, RawCursor
from psycopg.sql import Composable

from diagnostics.store.event_counts import BITS, PACKED, PLACES, WORDS
from diagnostics.store.rollups import LATENCY_BOUNDS_MS, MEASURES, PLAIN, SUMS

# Each feature keeps its statements in a folder of its own; a name is given once.
FILES = {path.stem: path for path in Path(__file__).parents[3].glob("*/*/sql/*.sql")}
# A count is an integer: far more than anybody sends, yet nobody may stop the fold.
MOST = 2_147_483_647
FAILURES = "<<failures>>"
# Of a run, those of the event that decides; and how many names of each sort a row holds.
RUN_NAMES = ("provider", "model", "environment", "source", "release", "prompt_version", "schema")
MOST_NAMES = 8
MOST_KINDS = 24
# A condition a line; one that goes on is indented.
LINE = re.compile(r"\n(?! )")


@cache
def statement(name: str, without: str = "") -> str:
    """Read `<name>.sql`; `<<columns>>` and its like stand for the measures of a rollup.

    The part that the mark `without` stands for is left out.
    """
    text = FILES[name].read_text(encoding="utf-8").replace(without, "")
    for mark, write in MARKS.items():
        if mark in text:
            text = text.replace(mark, write())
    return text


def _read(name: str) -> str:
    return FILES[name].read_text(encoding="utf-8").strip()


@cache
def measures_of_events() -> Mapping[str, str]:
    """Return how each measure is counted from rows of events: by conditions, then the sums."""
    bounds = pairwise((-1, *LATENCY_BOUNDS_MS, MOST))
    within = (f"is_call AND latency_ms > {low} AND latency_ms <= {high}" for low, high in bounds)
    conditions = (*LINE.split(_read("measures")), *within)
    counts = {
        name: f"count(*) FILTER (WHERE {condition})"
        if name in PLAIN
        else f"nullif(count(*) FILTER (WHERE {condition}), 0)"
        for name, condition in zip(PACKED, conditions, strict=True)
    }
    return {**counts, **dict(zip(SUMS, _sums(), strict=True))}


def _sums() -> list[str]:
    return [text.strip() for text in _read("sums_of_events").split(",\n")]


def _packed() -> str:
    """Add up the words of events, and their tokens and milliseconds."""
    words = [f"coalesce(sum(w{word}), 0)::bigint AS w{word}" for word in range(WORDS)]
    named = [f"{text} AS {name}" for text, name in zip(_sums(), SUMS, strict=True)]
    return ", ".join([*words, *named])


def _field_of(name: str) -> str:
    word, place = PLACES[name]
    field = f"(w{word} >> {BITS * place} & {2**BITS - 1})::integer"
    return field if name in PLAIN else f"nullif({field}, 0)"


def _total_of(name: str) -> str:
    if name in SUMS:
        return f"sum({name})::bigint"
    # `least` passes over nulls: without any count it would give the bound itself.
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


def _each(write: Callable[[str], str]) -> Callable[[], str]:
    """Write something of every measure."""
    return lambda: ", ".join(map(write, MEASURES))


def _joined(name: str, most: int = MOST_NAMES) -> str:
    """Join two lists of names; what is there already costs nothing."""
    distinct = 'array_agg(DISTINCT name COLLATE "C" ORDER BY name COLLATE "C")'
    names = f"unnest(kept.{name} || excluded.{name}) AS name"
    joined = f"(SELECT ({distinct})[1:{most}] FROM {names})"  # noqa: S608 - our own names
    return f"CASE WHEN kept.{name} @> excluded.{name} THEN kept.{name} ELSE {joined} END"


def _decided() -> str:
    """Take the names of the event that decides: of those that name a model, the latest."""
    keys = ("{0}.model IS NOT NULL", "{0}.decided_at", "{0}.decided_by")
    new, old = (", ".join(keys).format(row) for row in ("excluded", "kept"))
    names = ("decided_at", "decided_by", *RUN_NAMES)
    return ", ".join(
        f"{name} = CASE WHEN ({new}) > ({old}) THEN excluded.{name} ELSE kept.{name} END"
        for name in names
    )


MARKS: Mapping[str, Callable[[], str]] = {
    FAILURES: lambda: _read("record_failures"),
    "<<runs>>": lambda: _read("record_runs"),
    "<<run_sums>>": lambda: _read("run_sums"),
    "<<most_names>>": lambda: str(MOST_NAMES),
    "<<most_kinds>>": lambda: str(MOST_KINDS),
    "<<run_names>>": lambda: ", ".join(RUN_NAMES),
    "<<run_decided>>": _decided,
    "<<deciding_names>>": lambda: ", ".join(f"deciding.{name}" for name in RUN_NAMES),
    "<<joined_nodes>>": lambda: _joined("nodes"),
    "<<joined_called_models>>": lambda: _joined("called_models"),
    "<<joined_kinds>>": lambda: _joined("kinds", MOST_KINDS),
    "<<measures>>": lambda: ", ".join(measures_of_events().values()),
    "<<words>>": lambda: ", ".join(f"w{word} bigint" for word in range(WORDS)),
    "<<packed>>": _packed,
    "<<unpacked>>": lambda: ", ".join([*map(_field_of, PACKED), *SUMS]),
    "<<columns>>": _each(str),
    "<<summed>>": _each(_total_of),
    "<<added>>": _each(_sum_of),
    "<<totalled>>": _each("{0} = coalesce(kept.{0}, 0) + coalesce(excluded.{0}, 0)".format),
    "<<totals>>": _each("total.{}".format),
    "<<totalled_sums>>": _each("coalesce(sum({0}), 0)::bigint AS {0}".format),
    "<<net>>": _each(_net_of),
    "<<negated>>": _each("-{}".format),
}


def fetch(text: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a statement, planned for these values."""
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return list(cursor.fetchall())


def change(text: str | Composable, values: Mapping[str, Any] | Sequence[Any] = ()) -> int:
    """Run a statement; returns how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return int(cursor.rowcount)


# What prepared statements cost is planning: several times what a small batch costs to store.
GENERIC = "SELECT set_config('plan_cache_mode', 'force_generic_plan', false)"
ONCE = 0
NAMED = re.compile(r"%\((\w+)\)s|%%")


class _Prepared:
    """The connections that were told to keep their plans."""

    seen: WeakSet[Connection[Any]] = WeakSet()


def execute(name: str, asked: Mapping[str, Any], without: str = "") -> list[tuple[Any, ...]]:
    """Run `<name>.sql`, a part left out, in the caller's transaction and give its rows."""
    return execute_prepared(statement(name, without), asked)


def execute_prepared(text: str, asked: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run a statement in the caller's transaction and give its rows.

    Values are bound by the server and the statement is prepared, with one plan for all
    values, which Django's own cursor does not do.
    """
    connection.ensure_connection()
    server = connection.connection
    numbered, names = number_places(text)
    # Django's own class of cursors writes values into the text, which is never prepared;
    # psycopg's own reads a long text anew each time.
    with connection.wrap_database_errors, RawCursor(server) as cursor:
        if server not in _Prepared.seen:
            cursor.execute(GENERIC)
            # Django turns preparing off; its own cursors do without in any case.
            server.prepare_threshold = ONCE
            # What is set in a transaction that is rolled back is as before.
            on_commit(partial(_Prepared.seen.add, server))
        cursor.execute(numbered, [asked[name] for name in names], prepare=True)
        return list(cursor.fetchall()) if cursor.description else []


@cache
def number_places(text: str) -> tuple[bytes, tuple[str, ...]]:
    """Write `%(name)s` as $1, $2, ...; give the text and the names in order."""
    names: list[str] = []

    def place(found: re.Match[str]) -> str:
        if found[1] is None:
            return "%"
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    return NAMED.sub(place, text).encode(), tuple(names)

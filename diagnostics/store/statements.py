"""Running a named statement so that the server plans it once a connection."""

import re
from collections.abc import Mapping
from functools import cache, partial
from typing import Any
from weakref import WeakSet

from django.db import connection
from django.db.transaction import on_commit
from psycopg import Connection, RawCursor

from diagnostics.store.sql import statement

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

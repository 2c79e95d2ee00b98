"""Running a named statement so that the server plans it once a connection."""

from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

from django.db import connection
from psycopg import Connection

from diagnostics.sql import statement

# What prepared statements cost is planning: several times what a small batch costs to store.
GENERIC = "SELECT set_config('plan_cache_mode', 'force_generic_plan', false)"


class _Prepared:
    """The connections that were told to keep their plans."""

    seen: WeakSet[Connection[Any]] = WeakSet()


def execute(name: str, asked: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run `<name>.sql` in the caller's transaction and give its rows."""
    return execute_prepared(statement(name), asked)


def execute_prepared(text: str, asked: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run a statement in the caller's transaction and give its rows.

    Values are bound by the server and the statement is prepared, with one plan for all
    values, which Django's own cursor does not do.
    """
    connection.ensure_connection()
    server = connection.connection
    with connection.wrap_database_errors, server.cursor() as cursor:
        if server not in _Prepared.seen:
            cursor.execute(GENERIC)
            _Prepared.seen.add(server)
        cursor.execute(text, asked, prepare=True)
        return list(cursor.fetchall())

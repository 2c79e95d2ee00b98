"""A statement that is sent for every step: prepared once a connection, without a cursor.

What a cursor does around a statement - look up types, keep descriptions, make rows -
costs this process several times what sending it does.
"""

from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import Connection, generators
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from diagnostics.storage.executing import GENERIC, execute_prepared, number_places
from plans.sql import statement

_DONE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


class Prepared:
    """A statement of `plans/sql` whose values are texts and whose answer is a boolean."""

    def __init__(self, name: str) -> None:
        self._text = statement(name)
        self._numbered, self._names = number_places(self._text)
        self._key = f"plans_{name}".encode()
        self._known: WeakSet[Connection[Any]] = WeakSet()

    def ask(self, values: Mapping[str, str]) -> bool | None:
        """Return the first column of the first row, or None when there is no row.

        Commits by itself, unless the caller is in a transaction.
        """
        django = connections[DEFAULT_DB_ALIAS]
        django.ensure_connection()
        if django.in_atomic_block:
            rows = execute_prepared(self._text, values)
            return bool(rows[0][0]) if rows else None
        with django.wrap_database_errors:
            result = self._send(django.connection, values)
        return result.get_value(0, 0) == b"t" if result.ntuples else None

    def _send(self, server: Connection[Any], values: Mapping[str, str]) -> PGresult:
        if server not in self._known:
            self._prepare(server)
        given = [values[name].encode() for name in self._names]
        try:
            return self._execute(server, given)
        except InvalidSqlStatementName:
            # psycopg forgets all that is prepared when something is rolled back.
            self._prepare(server)
            return self._execute(server, given)

    def _execute(self, server: Connection[Any], given: list[bytes]) -> PGresult:
        server.pgconn.send_query_prepared(self._key, given)
        return _answer(server)

    def _prepare(self, server: Connection[Any]) -> None:
        server.pgconn.send_query_params(GENERIC.encode(), None)
        _answer(server)
        server.pgconn.send_prepare(self._key, self._numbered)
        _answer(server)
        self._known.add(server)


def _answer(server: Connection[Any]) -> PGresult:
    """Wait as a cursor would, so that signals are heard meanwhile."""
    result: PGresult = server.wait(generators.execute(server.pgconn))[-1]
    if result.status not in _DONE:
        raise error_from_result(result)
    return result

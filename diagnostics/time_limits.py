"""Statements of a page end after a while: the server stops them, not the reader's patience."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import connection
from django.db.utils import OperationalError
from psycopg import Error
from psycopg.errors import QueryCanceled

SET = "SELECT set_config('statement_timeout', %s, false)"


@contextmanager
def limited_statements(seconds: float) -> Iterator[None]:
    """Let no statement inside run longer, on this connection.

    It is set for the session and taken back afterwards: pages read in autocommit, where
    SET LOCAL would end with its own statement, and the connection goes back to a pool.
    """
    connection.ensure_connection()
    server = connection.connection
    server.execute(SET, [f"{seconds * 1000:.0f}"])
    try:
        yield
    finally:
        # In a transaction that failed, rolling back takes it back.
        with suppress(Error):
            server.execute("RESET statement_timeout")


def was_stopped(error: OperationalError) -> bool:
    """Ask whether a statement was stopped because it took too long."""
    return isinstance(error.__cause__, QueryCanceled)

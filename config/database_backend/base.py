"""Django's PostgreSQL backend with a cheaper check of pooled connections.

A query would cost each request a round trip, more than most requests need otherwise. A server
that is gone has closed its socket, which the operating system reports without a query.
"""

from select import POLLIN, poll
from typing import Any

from django.db.backends.postgresql import base
from psycopg import Connection, Error


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes connections from the pool until one is alive."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:  # noqa: ANN401 - as the base has it
        """Return a live connection; closed ones are returned to the pool and replaced."""
        connection = super().get_new_connection(conn_params)
        while not is_alive(connection):
            connection.close()
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection


def is_alive(connection: "Connection[Any]") -> bool:
    """Whether an idle connection is still open at the server.

    The socket is readable when the server has closed it or sent a notice; only then the
    server is queried.
    """
    if connection.closed:
        return False
    poller = poll()
    poller.register(connection.fileno(), POLLIN)
    if not poller.poll(0):
        return True
    try:
        connection.execute("")
    except Error:
        return False
    return True

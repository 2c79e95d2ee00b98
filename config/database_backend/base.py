"""Django's backend, but for how a pooled connection is found to be alive.

Asking the server costs each request a round trip, more than what most of them do there. A
server that is gone has closed its socket, which the machine knows without asking.
"""

from select import POLLIN, poll
from typing import Any

from django.db.backends.postgresql import base
from psycopg import Connection, Error


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes connections from the pool until one is alive."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:  # noqa: ANN401 - as the base has it
        """Return a connection; one whose server has closed it goes back to be replaced."""
        taken = super().get_new_connection(conn_params)
        while not is_alive(taken):
            taken.close()
            self.pool.putconn(taken)
            taken = super().get_new_connection(conn_params)
        return taken


def is_alive(link: "Connection[Any]") -> bool:
    """Whether a connection nobody uses still has its server.

    There is something to be read when the server has closed it, or has told something by
    itself: then, and only then, it is asked.
    """
    if link.closed:
        return False
    socket = poll()
    socket.register(link.fileno(), POLLIN)
    if not socket.poll(0):
        return True
    try:
        link.execute("")
    except Error:
        return False
    return True

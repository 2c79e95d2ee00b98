"""Django's DATABASES from DATABASE_URL."""

import os
from typing import Any

from django.db import InterfaceError, InternalError, OperationalError
from psycopg.conninfo import conninfo_to_dict

CONNECT_TIMEOUT_SECONDS = 10
POOL_WAIT_SECONDS = 5
NOWHERE = "/nonexistent/failsoft"
# What PostgreSQL refuses for a reason outside of the product, by SQLSTATE, and what helps.
REMEDIES = {
    "25P03": "raise idle_in_transaction_session_timeout of the role",
    "25006": "DATABASE_URL leads to a standby, or its role may only read",
    "42501": "the role of DATABASE_URL must own the database, its schema and its tables",
    "3F000": "the search_path of the role or the database has no schema that exists",
    "42P01": "the tables are missing or in another schema; `manage.py migrate` creates them",
    "42703": "the tables are those of another version; `manage.py migrate` upgrades them",
    "53100": "free space on the database server",
    "53200": "the database server is out of memory",
    "53300": "all connections of the database server are in use",
    "55P03": "another program holds a lock; end it, or raise lock_timeout of the role",
    "57014": "raise statement_timeout of the role",
}
# What libpq says of a connection that it does not get, and what it means for DATABASE_URL.
CONNECTION_FAULTS = {
    "Connection refused": "nothing listens at the address of DATABASE_URL",
    "No such file": "nothing listens at the address of DATABASE_URL",
    "resolve host": "the host of DATABASE_URL is unknown",
    "timeout expired": "no answer in time from the address of DATABASE_URL",
    "get a connection": "no connection of the pool became free, or could be opened, in time",
    "too many": "all connections of the database server, or of the role, are in use",
    "connection slots": "all connections of the database server, or of the role, are in use",
    "starting up": "the database server is starting",
    "shutting down": "the database server is stopping",
    "recovery": "the database server is recovering",
    'database "': "the database of DATABASE_URL does not exist",
    'role "': "the server refuses the role of DATABASE_URL",
    "password": "the server refuses the role or the password of DATABASE_URL",
    "pg_hba.conf": "the server refuses the role or the address of this machine: its pg_hba.conf",
    "SSL": "the server's TLS is not what DATABASE_URL says: sslmode, sslrootcert",
}
# SQLSTATEs, by their beginnings, of a server that cannot be used whatever the statement.
OUTAGES = ("08", "53", "57P", "25006")


def explain_outage(error: BaseException) -> str | None:
    """Return why the database is away, or None if this is another error."""
    state = getattr(error.__cause__, "sqlstate", None)
    if not isinstance(error, (OperationalError, InterfaceError, InternalError)):
        return None
    if state and not state.startswith(OUTAGES):
        return None
    is_lost = bool(state) or "connection" in str(error)
    return explain_connection(error) or ("the connection was lost" if is_lost else None)


def explain_connection(error: BaseException) -> str | None:
    """Return what the words or the SQLSTATE of an error mean for an administrator."""
    state = getattr(error.__cause__, "sqlstate", None)
    words = (reason for words, reason in CONNECTION_FAULTS.items() if words in str(error))
    return REMEDIES.get(state or "") or next(words, None)


def database_settings(url: str, pool_size: int) -> dict[str, Any]:
    """Return the DATABASES entry for `url`, parsed by libpq; `pool_size` 0 means no pool.

    libpq finds what the URL omits: PGHOST, PGUSER, a password file, the local socket.
    Without a URL the entry names a host that does not exist, so that commands without a
    database still run. Raises psycopg.ProgrammingError.
    """
    parameters: dict[str, Any] = conninfo_to_dict(url)
    has_service = "service" in parameters
    name = "" if has_service else os.environ.get("PGDATABASE", "failsoft")
    entry: dict[str, Any] = {
        "ENGINE": "config.database_backend" if pool_size else "django.db.backends.postgresql",
        "NAME": parameters.pop("dbname", name),
        "USER": parameters.pop("user", ""),
        "PASSWORD": parameters.pop("password", ""),
        "HOST": parameters.pop("host", "" if url else NOWHERE),
        "PORT": parameters.pop("port", ""),
        # A pooler may give each part of a result another connection.
        "DISABLE_SERVER_SIDE_CURSORS": True,
        # config.database_backend checks pooled connections.
        "CONN_HEALTH_CHECKS": not pool_size,
        "OPTIONS": {"connect_timeout": CONNECT_TIMEOUT_SECONDS, **parameters},
    }
    # A pool serves threads of one process (web). Commands and worker children have one
    # thread each: they keep one connection, and no pool thread is lost in a fork.
    if not pool_size:
        return entry | {"CONN_MAX_AGE": None}
    pool = {"min_size": 1, "max_size": pool_size, "timeout": POOL_WAIT_SECONDS}
    return entry | {"CONN_MAX_AGE": 0, "OPTIONS": {**entry["OPTIONS"], "pool": pool}}

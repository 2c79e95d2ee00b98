"""Django's DATABASES from DATABASE_URL."""

import os
from typing import Any

from psycopg.conninfo import conninfo_to_dict

CONNECT_TIMEOUT_SECONDS = 10
POOL_WAIT_SECONDS = 5
NOWHERE = "/nonexistent/failsoft"


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
    return entry | _connection_options(entry["OPTIONS"], pool_size)


def _connection_options(options: dict[str, Any], pool_size: int) -> dict[str, Any]:
    # A pool serves threads of one process (web). Commands and worker children have one
    # thread each: they keep one connection, and no pool thread is lost in a fork.
    if not pool_size:
        return {"CONN_MAX_AGE": None}
    pool = {"min_size": 1, "max_size": pool_size, "timeout": POOL_WAIT_SECONDS}
    return {"CONN_MAX_AGE": 0, "OPTIONS": {**options, "pool": pool}}

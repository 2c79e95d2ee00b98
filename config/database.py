"""From DATABASE_URL to Django's DATABASES."""

import os
from typing import Any

from psycopg.conninfo import conninfo_to_dict

CONNECT_TIMEOUT_SECONDS = 10
POOL_WAIT_SECONDS = 5
NOWHERE = "/nonexistent/failsoft"


def database_settings(url: str, pool_size: int) -> dict[str, Any]:
    """Return one DATABASES entry for `url`, as libpq reads it; `pool_size` 0: no pool.

    What the URL leaves out is libpq's to find: PGHOST, PGUSER, a password file, the local
    socket. Without a URL the entry names a host that cannot be, so that a command that
    needs no database still runs. Raises psycopg.ProgrammingError.
    """
    given: dict[str, Any] = conninfo_to_dict(url)
    is_elsewhere = "service" in given
    name = "" if is_elsewhere else os.environ.get("PGDATABASE", "failsoft")
    entry: dict[str, Any] = {
        "ENGINE": "config.database_backend" if pool_size else "django.db.backends.postgresql",
        "NAME": given.pop("dbname", name),
        "USER": given.pop("user", ""),
        "PASSWORD": given.pop("password", ""),
        "HOST": given.pop("host", "" if url else NOWHERE),
        "PORT": given.pop("port", ""),
        # Pooled connections are looked at by config.database_backend.
        "CONN_HEALTH_CHECKS": not pool_size,
        "OPTIONS": {"connect_timeout": CONNECT_TIMEOUT_SECONDS, **given},
    }
    return entry | _keeping(entry["OPTIONS"], pool_size)


def _keeping(options: dict[str, Any], pool_size: int) -> dict[str, Any]:
    # A pool serves threads of one process (web). Commands and worker children have one
    # thread each: they keep one connection, and no pool thread is lost in a fork.
    if not pool_size:
        return {"CONN_MAX_AGE": None}
    pool = {"min_size": 1, "max_size": pool_size, "timeout": POOL_WAIT_SECONDS}
    return {"CONN_MAX_AGE": 0, "OPTIONS": {**options, "pool": pool}}

"""From DATABASE_URL to Django's DATABASES."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

CONNECT_TIMEOUT_SECONDS = 10
POOL_WAIT_SECONDS = 5


def database_settings(url: str, pool_size: int) -> dict[str, Any]:
    """Return one DATABASES entry for `url`; `pool_size` 0 means no pool.

    A unix socket is named by `?host=/folder`, as libpq does. Without a URL the entry
    names a host that cannot be, so that a command that needs no database still runs.
    """
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    entry: dict[str, Any] = {
        "ENGINE": "config.pooled" if pool_size else "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "failsoft",
        "USER": unquote(parts.username or "") or query.pop("user", ""),
        "PASSWORD": unquote(parts.password or "") or query.pop("password", ""),
        "HOST": parts.hostname or query.pop("host", "/nonexistent/failsoft"),
        "PORT": str(parts.port or query.pop("port", "")),
        # Pooled connections are looked at by config.pooled.
        "CONN_HEALTH_CHECKS": not pool_size,
        "OPTIONS": {"connect_timeout": CONNECT_TIMEOUT_SECONDS, **query},
    }
    return entry | _keeping(entry["OPTIONS"], pool_size)


def _keeping(options: dict[str, Any], pool_size: int) -> dict[str, Any]:
    # A pool serves threads of one process (web). Commands and worker children have one
    # thread each: they keep one connection, and no pool thread is lost in a fork.
    if not pool_size:
        return {"CONN_MAX_AGE": None}
    pool = {"min_size": 1, "max_size": pool_size, "timeout": POOL_WAIT_SECONDS}
    return {"CONN_MAX_AGE": 0, "OPTIONS": {**options, "pool": pool}}

"""Settings, addresses, the Celery application and the one-machine stack."""

from failsoft import VERSION

ALIVE = f"ok {VERSION}\n"
"""The body of `/healthz`, which performs no checks."""

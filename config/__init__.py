"""Settings, addresses, the Celery application and the one-machine stack."""

import os

from failsoft import VERSION

# Before anything reads Django's settings: a server's configuration of logging does so first.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

ALIVE = f"ok {VERSION}\n"
"""The body of `/healthz`, which performs no checks."""

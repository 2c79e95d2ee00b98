"""Settings, addresses, the Celery application and the one-machine stack."""

from failsoft import VERSION

ALIVE = f"ok {VERSION}\n"
"""What `/healthz` answers: nothing is looked up for it."""

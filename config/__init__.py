"""Settings, addresses, the Celery application and the one-machine stack."""

VERSION = "0.1.0"

ALIVE = f"ok {VERSION}\n"
"""What `/healthz` answers: nothing is looked up for it."""

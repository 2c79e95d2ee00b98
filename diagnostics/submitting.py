"""Waking the relay: a hint that saves a second, never a condition of success (C9)."""

from time import monotonic

import structlog
from celery import current_app

logger = structlog.get_logger(__name__)

RELAY_TASK = "diagnostics.tasks.relay_outbox"
RELAY_QUEUE = "fold"
# Beat wakes the relay every second anyway: a broker that hangs costs a request 2 s each time.
PAUSE_SECONDS = 30.0


class _Pause:
    until = 0.0


def wake_relay() -> bool:
    """Ask a worker to relay now; never raises, False when nobody could be asked."""
    if monotonic() < _Pause.until:
        return False
    if _Pause.until:
        # This caller tries again; those beside it need not wait, too.
        _Pause.until = monotonic() + PAUSE_SECONDS
    try:
        send(RELAY_TASK, {}, RELAY_QUEUE)
    except Exception as error:  # noqa: BLE001 - the row is safe, the hint is optional
        _Pause.until = monotonic() + PAUSE_SECONDS
        logger.warning("relay_not_woken", error=type(error).__name__)
        return False
    _Pause.until = 0.0
    return True


def send(task: str, kwargs: dict[str, object], queue: str) -> None:
    """Hand one task to the broker, tried once; raises when it cannot be reached."""
    current_app.send_task(task, kwargs=kwargs, queue=queue, retry=False)

"""The watchdog of a worker: it ends a worker that does not consume messages any more.

After a lost connection a consumer may reconnect and never receive anything. The supervisor
of workers (systemd, containers, the local stack) restarts a worker that ended.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from celery import Celery
from django.db import DatabaseError, close_old_connections
from kombu import Connection

logger = structlog.get_logger(__name__)

# Restart included, a worker consumes messages again within half a minute.
CHECK_SECONDS = 5.0
PATIENCE_SECONDS = 15.0
REPORT_SECONDS = 5.0


@dataclass
class Stall:
    """The time since when messages wait although the worker has free slots."""

    patience_seconds: float = PATIENCE_SECONDS
    _since: float | None = None

    def is_overdue(self, now: float, *, waiting: int, free: int) -> bool:
        """Whether messages have waited too long; `free` is the number of free slots."""
        if not waiting or free <= 0:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        return now - self._since >= self.patience_seconds

    @property
    def is_suspected(self) -> bool:
        return self._since is not None

    def note_message(self) -> None:
        self._since = None


def count_waiting(app: Celery, queues: Sequence[str]) -> int:
    """Return the number of messages in queues; 0 when the broker is unavailable."""
    try:
        # A publisher's connection has timeouts: a broker may take connections and never answer.
        with app.connection_for_write() as broker:
            return sum(_count(broker, name) for name in queues)
    except Exception as error:  # noqa: BLE001 - an error is no stall
        logger.debug("queues_not_counted", error=type(error).__name__)
        return 0


def _count(broker: Connection, name: str) -> int:
    """Return the length of a queue; Redis has no empty queues, RabbitMQ closes the channel."""
    try:
        with broker.channel() as untyped_channel:
            channel: Any = untyped_channel  # the type depends on the transport
            return int(channel.queue_declare(name, passive=True).message_count)
    except broker.channel_errors:
        return 0


def watch(stall: Stall, count: Callable[[], int], free: Callable[[], int]) -> None:
    """Check for a stall periodically, in a thread, and end a stalled worker."""

    def check() -> None:
        while not stall.is_overdue(time.monotonic(), waiting=count(), free=free()):
            time.sleep(CHECK_SECONDS)
        logger.critical("worker_stalled", pid=os.getpid())
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=check, name="stall-watch", daemon=True).start()


def report_alive(stall: Stall, note: Callable[[], object]) -> None:
    """Report periodically that this worker is alive, unless a stall is suspected.

    Readiness can then distinguish a busy worker from a dead one.
    """

    def report() -> None:
        while True:
            close_old_connections()
            if not stall.is_suspected:
                try:
                    note()
                except DatabaseError as error:
                    logger.debug("worker_not_noted", error=type(error).__name__)
            time.sleep(REPORT_SECONDS)

    threading.Thread(target=report, name="alive", daemon=True).start()

"""A worker that takes no messages any more ends, so that it is started anew.

After a lost connection a consumer may come back and receive nothing, for ever. Whoever
starts workers (systemd, containers, the local stack) starts one that ended again.
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

# Together with its start anew, a worker takes messages again within half a minute.
LOOK_SECONDS = 3.0
PATIENCE_SECONDS = 15.0
REPORT_SECONDS = 5.0


@dataclass
class Stall:
    """Since when messages wait for a worker that has room and takes none."""

    patience_seconds: float = PATIENCE_SECONDS
    _since: float | None = None

    def is_over_patience(self, now: float, *, waiting: int, free: int) -> bool:
        """Whether they have waited too long; `free` is how many it could take."""
        if not waiting or free <= 0:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        return now - self._since >= self.patience_seconds

    @property
    def is_suspected(self) -> bool:
        """Whether messages waited for it in vain at the last look."""
        return self._since is not None

    def note_message(self) -> None:
        """Begin anew: it does take messages."""
        self._since = None


def count_waiting(app: Celery, queues: Sequence[str]) -> int:
    """Count the messages in queues; none when the broker is away: workers hear of that."""
    try:
        with app.connection_for_read() as broker:
            return sum(_count(broker, name) for name in queues)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is no stall
        logger.debug("queues_not_counted", error=type(error).__name__)
        return 0


def _count(broker: Connection, name: str) -> int:
    """Count one queue; to Redis an empty one is none at all, and RabbitMQ ends the channel."""
    try:
        with broker.channel() as opened:
            channel: Any = opened  # each transport has its own
            return int(channel.queue_declare(name, passive=True).message_count)
    except broker.channel_errors:
        return 0


def watch(stall: Stall, count: Callable[[], int], free: Callable[[], int]) -> None:
    """Look from time to time, from a thread of its own, and end a stalled worker."""

    def look() -> None:
        while not stall.is_over_patience(time.monotonic(), waiting=count(), free=free()):
            time.sleep(LOOK_SECONDS)
        logger.critical("worker_stalled", pid=os.getpid())
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=look, name="stall-watch", daemon=True).start()


def report_alive(stall: Stall, note: Callable[[], object]) -> None:
    """Note from time to time that this worker is alive, unless it may have stalled.

    Readiness then tells a busy worker from a dead one.
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

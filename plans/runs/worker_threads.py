"""Threads with their own database connection, and whether this process is ending."""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType

from django.db import connections

_MOST_THREADS = 64


class KeptThreads:
    """A pool that is made when it is needed, and made anew after a fork."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._pid = 0

    def submit(self, work: Callable[[], None]) -> Future[None]:
        """Let a thread do the work."""
        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                self._pool = ThreadPoolExecutor(_MOST_THREADS, self._name)
                self._pid = os.getpid()
            return self._pool.submit(work)

    def end(self) -> None:
        """Let all threads go, and close their connections."""
        with self._lock:
            pool, self._pool = self._pool, None
            if pool is None or self._pid != os.getpid():
                return
        threads = len(pool._threads)
        together = threading.Barrier(threads)
        for _ in range(threads):
            pool.submit(_close_connections, together)
        pool.shutdown()


def _close_connections(together: threading.Barrier) -> None:
    connections.close_all()
    # Each thread closes its own: none may come twice.
    together.wait(timeout=5)


writers = KeptThreads("plans-writer")
# Told to the processes of a worker by the one that hears SIGTERM.
STOP_SIGNAL = signal.SIGUSR2


class _Wish:
    to_stop = False


def is_stopping() -> bool:
    """Whether no further step is to be begun here."""
    return _Wish.to_stop


def listen() -> None:
    """Hear the signal from now on; for processes that execute tasks."""
    _Wish.to_stop = False
    signal.signal(STOP_SIGNAL, _note)


def _note(_number: int, _frame: FrameType | None) -> None:
    _Wish.to_stop = True

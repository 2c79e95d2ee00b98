"""Thread pools with their own database connections, and the stop flag of this process."""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import FrameType

_MOST_THREADS = 64


class KeptThreads:
    """A thread pool that is created on demand, and again after a fork."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._pid = 0

    def submit(self, work: Callable[[], None]) -> Future[None]:
        """Run `work` in a thread of the pool, in the context of the caller."""
        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                self._pool = ThreadPoolExecutor(_MOST_THREADS, self._name)
                self._pid = os.getpid()
            return self._pool.submit(copy_context().run, work)


writers = KeptThreads("plans-writer")
# Sent by the main process of a worker to its children on SIGTERM.
STOP_SIGNAL = signal.SIGUSR2


class _StopFlag:
    is_set = False


def is_stopping() -> bool:
    """Whether this process is stopping, so that no further step may begin."""
    return _StopFlag.is_set


def handle_stop_signal() -> None:
    """Install the handler of STOP_SIGNAL, in processes that execute tasks."""
    _StopFlag.is_set = False
    signal.signal(STOP_SIGNAL, _set_stop_flag)


def _set_stop_flag(_number: int, _frame: FrameType | None) -> None:
    _StopFlag.is_set = True

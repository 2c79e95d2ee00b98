"""What is left is sent when a process ends, a child of multiprocessing as well."""

import atexit
import multiprocessing
import os
import threading
import time
from functools import cache
from multiprocessing.util import Finalize, register_after_fork
from typing import Any

EXIT_SECONDS = 5
_ending = threading.Event()


@cache
def _exit_until() -> float:
    """Return until when spans and log records, which are sent at once, may keep the process."""
    return time.monotonic() + EXIT_SECONDS


def shut_down_at_exit(processor: Any) -> None:  # noqa: ANN401 - of spans or log records
    """Send at exit what is left, for as long as a server may keep the process.

    The thread is there from the beginning: since Python 3.12 none can be started at exit.
    """
    ended = threading.Event()

    def shut_down() -> None:
        _ending.wait()
        processor.shutdown()
        ended.set()

    def start() -> None:
        threading.Thread(target=shut_down, name="failsoft-exit", daemon=True).start()

    def end() -> None:
        _ending.set()
        ended.wait(_exit_until() - time.monotonic())

    def end_with_child(_processor: object) -> None:
        Finalize(None, end, exitpriority=0)

    start()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=start)
    atexit.register(end)
    # Children of multiprocessing end without `atexit`.
    register_after_fork(processor, end_with_child)
    if multiprocessing.parent_process() is not None:
        end_with_child(processor)

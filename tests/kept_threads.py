"""The threads that the runners keep, whose connections hold a test's database."""

import os
import threading

from django.db import connections

from plans.runs.inline import crew_threads
from plans.runs.worker_threads import writers


def end_kept_threads() -> None:
    """Close the connections of all threads and end them; the next step starts others."""
    for kept in (writers, crew_threads):
        with kept._lock:
            pool, kept._pool = kept._pool, None
        if pool is not None and kept._pid == os.getpid():
            together = threading.Barrier(len(pool._threads))
            for _ in list(pool._threads):
                pool.submit(_close_connections, together)
            pool.shutdown()


def _close_connections(together: threading.Barrier) -> None:
    connections.close_all()
    # Each thread closes its own; the barrier keeps a thread from taking two of these tasks.
    together.wait(timeout=5)

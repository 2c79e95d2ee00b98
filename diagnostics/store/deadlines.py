"""A deadline on a piece of work in a worker, whatever it is doing: a statement or a long loop."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

import structlog
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from django.db.models import QuerySet
from psycopg import Error
from psycopg.pq import TransactionStatus

logger = structlog.get_logger(__name__)

CANCEL_SECONDS = 1.0
# A cancelled statement ends as a fault. What takes it for one and goes on is stopped next.
AGAIN_SECONDS = 0.2
# What swallows the stop, such as a destructor, is stopped again.
UNWIND_SECONDS = 5.0


class OutOfTimeError(BaseException):
    """the work did not end by its deadline

    No `Exception`: the code that it stops must not take it for a fault of its own.
    """


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Stop what runs inside after so many seconds: a statement is cancelled, Python is left.

    Raises OutOfTimeError. Only a main thread has deadlines, since a worker runs its tasks there,
    and one at a time: inside another the outer one goes on.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return
    was_cancelled, is_outermost = False, not connection.in_atomic_block

    def stop(signum: int, frame: FrameType | None) -> None:
        nonlocal was_cancelled
        if _status() is TransactionStatus.ACTIVE:
            was_cancelled = True
            with suppress(Error):
                connection.connection.cancel_safe(timeout=CANCEL_SECONDS)
            return
        signal.setitimer(signal.ITIMER_REAL, UNWIND_SECONDS)
        raise OutOfTimeError(f"not done within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    except OperationalError as error:
        if was_cancelled:
            raise OutOfTimeError(f"not done within {seconds:g} s") from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if is_outermost:
            _drop_open_transaction()


def try_work(name: str, project_id: int | None, work: Callable[[], int], seconds: float) -> int:
    """Return how much a piece of work did; 0 if it failed or took too long, which is logged.

    The work of other projects goes on.
    """
    try:
        with deadline(seconds):
            return work()
    except OutOfTimeError as error:
        logger.warning("passed_over", project=project_id, part=name, reason=str(error))
    except Exception:
        logger.exception("work_failed", project=project_id, part=name)
    return 0


def try_each_project(
    name: str, rows: QuerySet[Any], work: Callable[[QuerySet[Any], int], int], seconds: float
) -> int:
    """Do a piece of work for each project that has such rows; return how much was done."""
    projects = list(rows.order_by("project").values_list("project", flat=True).distinct())
    return sum(
        try_work(name, project, partial(work, rows, project), seconds) for project in projects
    )


def _status() -> TransactionStatus:
    server = connection.connection
    return TransactionStatus.IDLE if server is None else server.info.transaction_status


def _drop_open_transaction() -> None:
    """Drop the connection if the stop hit the end of a transaction, which nobody ends then."""
    if connection.in_atomic_block or _status() is not TransactionStatus.IDLE:
        with suppress(Error):
            connection.close()
        del connections[DEFAULT_DB_ALIAS]

"""Deadlines on work in a worker, and turns of projects, so that none delays the others.

1. A deadline stops whatever a worker is doing: a statement or a long loop.
2. A project has a turn a minute, and each part of it a deadline. Whose last turn ended longest
   ago comes first: a project that was not reached is the next. A part that does not end in time,
   or fails, is passed over until the next turn, which the project's row tells. A turn in which a
   part failed, or whose worker was killed, is given again.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from types import FrameType
from typing import Any

import structlog
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from django.db.models import Min, QuerySet
from psycopg import Error
from psycopg.pq import TransactionStatus

from diagnostics import clock
from diagnostics.store.models import ProjectTurn
from diagnostics.store.sql import change, fetch, statement
from diagnostics.store.windows import WIDTHS, Grain, floor

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
        is_left = connection.in_atomic_block or _status() is not TransactionStatus.IDLE
        if is_outermost and is_left:
            # The stop hit the end of a transaction, which nobody ends then.
            with suppress(Error):
                connection.close()
            del connections[DEFAULT_DB_ALIAS]


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


LEFT_OPEN = timedelta(seconds=40)
"""A turn that did not end is given again after so long: no deadlines of a turn last longer."""
OVERDUE = timedelta(minutes=2)
"""So long after its last turn a project waits for the next one at most."""
ENSURE = """
INSERT INTO diagnostics_projectturn (project_id, minute, began_at, ended_at, passed_over)
SELECT id, to_timestamp(0), failsoft_now(), failsoft_now(), '{}' FROM diagnostics_project
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class TurnPart:
    """A part of a project's turn: what does it, returning how much it did, and how long it has."""

    name: str
    work: Callable[[int, datetime], int]
    seconds: float


def give_turns(parts: Sequence[TurnPart], now: datetime, seconds: float) -> int:
    """Give projects their turn of this minute; return how much all parts did.

    After so many seconds no other is begun: whoever comes next begins with those that are left.
    """
    change(ENSURE)
    parameters = {"minute": floor(now, WIDTHS[Grain.MINUTE]), "left_open": LEFT_OPEN}
    end, turns = monotonic() + seconds, 0
    while claimed := fetch(statement("claim_turn"), parameters):
        turns += _take_turn(claimed[0][0], parts, now)
        if monotonic() >= end:
            break
    return turns


def all_turns_until() -> datetime:
    """Return the time until which every project had its turns: now, unless one waits too long."""
    now, oldest = clock.now(), ProjectTurn.objects.aggregate(oldest=Min("ended_at"))["oldest"]
    return oldest if oldest and now - oldest > OVERDUE else now


def _take_turn(project_id: int, parts: Sequence[TurnPart], now: datetime) -> int:
    done, left, is_failed = 0, list[str](), False
    for part in parts:
        try:
            with deadline(part.seconds):
                done += part.work(project_id, now)
        except OutOfTimeError as error:
            logger.warning("passed_over", project=project_id, part=part.name, reason=str(error))
            left.append(part.name)
        except Exception:
            logger.exception("turn_failed", project=project_id, part=part.name)
            left.append(part.name)
            is_failed = True
    ended = {} if is_failed else {"ended_at": clock.now()}
    judged = {} if left else {"judged_at": now}
    ProjectTurn.objects.filter(pk=project_id).update(passed_over=left, **ended, **judged)
    return done

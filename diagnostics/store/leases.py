"""The right to work on a row: a lease with a fencing token, for one worker at a time.

The worker whose conditional update changes the row holds it. A worker whose token is no longer
the row's has lost it and may not write. Rows that went silent are queued again: how far their
queue has been drained is the only proof that a message is lost.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import Error, connection, models, transaction
from django.db.models import F, Q, QuerySet, Subquery
from django.db.models.functions import Greatest

from diagnostics import clock
from diagnostics.clock import DatabaseNow
from diagnostics.store.models import Heartbeat, heartbeat_of
from diagnostics.store.outbox import BROKER_ERRORS, broker_fault, send, waiting

logger = structlog.get_logger(__name__)

# After this many dead workers a row is poison.
MAX_STARTS = 3
BATCH = 100
# The statuses of rows in progress or waiting.
UNFINISHED = ("queued", "running")
MOST_BATCHES = 10
MARK_TASK = "diagnostics.tasks.ping_queue"
SLOT_SECONDS = 5
# The longer a queue is undrained, the fewer marks are sent: one per tenth of that time.
SHARE = 10


class LeaseLostError(Exception):
    """another worker has taken over; what this one still does must not be stored"""


class LeasedRow(models.Model):
    """A row that one worker at a time works on.

    `lease_until` is null if there is nothing to do; for a waiting row it is the time until which
    its message counts as in transit. `starts` counts the claims since the last progress.
    """

    lease_until = models.DateTimeField(null=True, blank=True)
    # The token of the claim that wrote the row last; an older claim may not write.
    fencing_token = models.BigIntegerField(default=0)
    starts = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's lease of a row; `held` selects the row while the lease is valid."""

    held: QuerySet[Any]
    lease: timedelta
    token: int

    def renew(self, **changes: object) -> None:
        """Hold the row for another lease, and change columns with it.

        Inside a transaction this is the fence: it locks the row, and raises LeaseLostError
        before anything of an older claim is written.
        """
        self.change(lease_until=DatabaseNow() + self.lease, **changes)

    def release(self, **changes: object) -> None:
        """Release the row and change columns with it; fenced like `renew`."""
        self.change(lease_until=None, **changes)

    def change(self, **columns: object) -> None:
        """Change columns of the row; raises LeaseLostError if the lease is lost."""
        if self.held.update(**columns) != 1:
            raise LeaseLostError(LeaseLostError.__doc__)


@contextmanager
def kept_alive(seconds: float, *renewals: Callable[[], None]) -> Iterator[None]:
    """Renew leases every `seconds` from a second thread while this one works."""
    done = threading.Event()
    thread = threading.Thread(target=_renew_until, args=(done, seconds, renewals), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _renew_until(
    done: threading.Event, seconds: float, renewals: Iterable[Callable[[], None]]
) -> None:
    while not done.wait(seconds):
        try:
            for renew in renewals:
                renew()
        except LeaseLostError:
            return
        except Error as error:
            # The lease outlives some failures; the fence is what protects the row.
            logger.warning("lease_not_renewed", error=type(error).__name__)
        finally:
            # Each thread has a connection of its own.
            connection.close()


def silent(waiting: Q, working: Q, queue: str) -> Q:
    """Return the condition of rows whose message is lost or whose worker has died.

    A worker's row is silent when its lease has ended. A waiting row is silent when its queue
    has been drained beyond the lease: until then its message is merely late.
    """
    waiting &= Q(lease_until__lt=drained_until(queue))
    return waiting | working & Q(lease_until__lt=DatabaseNow())


def take_up(
    rows: QuerySet[Any],
    working: Q,
    queue_again: Callable[[Any], None],
    end_poisoned: Callable[[UUID], None],
) -> int:
    """Queue silent rows again, batch by batch; return how many there were.

    A `working` row that was started too often is ended as poison instead.
    """
    rows = rows.order_by("lease_until").annotate(is_poison=working & Q(starts__gte=MAX_STARTS))
    count = 0
    for _ in range(MOST_BATCHES):
        with transaction.atomic():
            batch = list(rows.select_for_update(skip_locked=True, of=("self",))[:BATCH])
            for row in batch:
                if not row.is_poison:
                    queue_again(row)
        for row in batch:
            if row.is_poison:
                end_poisoned(row.pk)
        count += len(batch)
        if len(batch) < BATCH:
            break
    return count


def send_mark(queue: str) -> bool:
    """Send the mark of this slot to a queue; return False if it needs none or cannot take one."""
    now = clock.now()
    drained = Heartbeat.objects.filter(name=heartbeat_of("drained", queue)).first()
    seconds = (now - drained.at).total_seconds() if drained else 0.0
    slots = max(1, int(seconds / SHARE / SLOT_SECONDS))
    if int(now.timestamp() / SLOT_SECONDS) % slots:
        return False
    unsent = waiting().filter(queue=queue).first()
    at = min(now, unsent.available_at) if unsent else now
    try:
        send(MARK_TASK, {"queue": queue, "at": at.isoformat()}, queue)
    except BROKER_ERRORS as error:
        logger.warning("broker_unreachable", reason=broker_fault(error))
        return False
    return True


def note_mark(queue: str, at: datetime) -> None:
    """Record that a worker took the mark of this time; marks may arrive out of order."""
    name = heartbeat_of("drained", queue)
    row, is_new = Heartbeat.objects.get_or_create(name=name, defaults={"at": at})
    if not is_new:
        Heartbeat.objects.filter(pk=row.pk).update(at=Greatest(F("at"), at))


def drained_until(queue: str) -> Subquery:
    """Return the time of the latest mark taken, null before the first, for use in queries."""
    marks = Heartbeat.objects.filter(name=heartbeat_of("drained", queue))
    return Subquery(marks.values("at"))

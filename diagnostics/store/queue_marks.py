"""How far a queue has been drained, the only proof that a message is lost.

1. A mark is a small message, sent to a queue every few seconds. It carries a time: every
   message due before that has been sent to the broker already.
2. Queues are first in, first out. When a worker takes a mark, every message due before its time
   has been taken by a worker or lost.
3. A row that still waits for such a message will never get it.

The broker is not queried. Marks that are lost with the other messages of a queue are followed
by later ones.
"""

from datetime import datetime

from django.db.models import F, Subquery
from django.db.models.functions import Greatest

from diagnostics import clock
from diagnostics.store.models import Heartbeat, drained_heartbeat
from diagnostics.store.outbox import send, waiting

MARK_TASK = "diagnostics.tasks.ping_queue"
SLOT_SECONDS = 5
# The longer a queue is undrained, the fewer marks are sent: one per tenth of that time.
SHARE = 10


def send_mark(queue: str) -> bool:
    """Send the mark of this slot to a queue; return False if the queue needs none."""
    now = clock.now()
    if not _is_due(queue, now):
        return False
    unsent = waiting().filter(queue=queue).first()
    at = min(now, unsent.available_at) if unsent else now
    send(MARK_TASK, {"queue": queue, "at": at.isoformat()}, queue)
    return True


def note_mark(queue: str, at: datetime) -> None:
    """Record that a worker took the mark of this time; marks may arrive out of order."""
    name = drained_heartbeat(queue)
    row, is_new = Heartbeat.objects.get_or_create(name=name, defaults={"at": at})
    if not is_new:
        Heartbeat.objects.filter(pk=row.pk).update(at=Greatest(F("at"), at))


def drained_until(queue: str) -> Subquery:
    """Return the time of the latest mark taken, null before the first, for use in queries."""
    marks = Heartbeat.objects.filter(name=drained_heartbeat(queue))
    return Subquery(marks.values("at"))


def _is_due(queue: str, now: datetime) -> bool:
    drained = Heartbeat.objects.filter(name=drained_heartbeat(queue)).first()
    seconds = (now - drained.at).total_seconds() if drained else 0.0
    slots = max(1, int(seconds / SHARE / SLOT_SECONDS))
    return int(now.timestamp() / SLOT_SECONDS) % slots == 0

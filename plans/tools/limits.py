"""Limits of simultaneous calls of a tool over all workers, as rows with leases.

A call holds one of the slots of the tool. The slot of a worker that dies is held until its
lease ends, and so is that of a call that timed out: its function may still be running.
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from uuid import UUID, uuid4

from django.db import Error, transaction
from django.db.models import F, Q

from diagnostics.clock import DatabaseNow
from failsoft.plans.execution import CallContext, ToolRefusedError, ToolTimeoutError
from plans.models.run import Run
from plans.models.tool import ToolSlot

# In addition to the tool's own time; the lease of a run is longer than both together.
LONGEST_WAIT_SECONDS = 20.0
_LEASE_MARGIN = timedelta(seconds=10)
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


@contextmanager
def holding_slot(name: str, limit: int, seconds: float, context: CallContext) -> Iterator[None]:
    """Hold one of `limit` slots for a call of at most `seconds`.

    Waits for one up to 20 s, and no longer than the run's deadline; then raises
    ToolRefusedError with the reason `tool_busy`.
    """
    holder = uuid4()
    lease = timedelta(seconds=seconds) + _LEASE_MARGIN
    if not _take(name, limit, holder, lease):
        _wait(name, limit, holder, lease, context)
    try:
        yield
    except ToolTimeoutError:
        raise
    except BaseException:
        _give_back(name, holder)
        raise
    else:
        _give_back(name, holder)


def _wait(name: str, limit: int, holder: UUID, lease: timedelta, context: CallContext) -> None:
    give_up_at = time.monotonic() + min(LONGEST_WAIT_SECONDS, _seconds_left(context))
    pause = _SHORTEST_PAUSE
    while time.monotonic() < give_up_at and not context.is_cancelled():
        # Jitter: waiting calls must not retry at the same moment.
        time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
        pause = min(2 * pause, _LONGEST_PAUSE)
        if _take(name, limit, holder, lease):
            return
    calls = "1 call" if limit == 1 else f"{limit} calls"
    raise ToolRefusedError("tool_busy", f"{name} is at its limit of {calls} at a time.")


def _seconds_left(context: CallContext) -> float:
    """Return the seconds until the deadline of the run, or the longest wait."""
    if not context.run_id:
        return LONGEST_WAIT_SECONDS
    run = Run.objects.filter(pk=context.run_id, deadline_at__isnull=False)
    remaining: timedelta | None = (
        run.annotate(remaining=F("deadline_at") - DatabaseNow())
        .values_list("remaining", flat=True)
        .first()
    )
    return LONGEST_WAIT_SECONDS if remaining is None else remaining.total_seconds()


def _take(name: str, limit: int, holder: UUID, lease: timedelta) -> bool:
    slots = ToolSlot.objects.filter(tool=name, number__lt=limit)
    free = Q(lease_until=None) | Q(lease_until__lt=DatabaseNow())
    with transaction.atomic():
        slot = slots.filter(free).order_by("number").select_for_update(skip_locked=True).first()
        if slot is not None:
            until = DatabaseNow() + lease
            slots.filter(pk=slot.pk).update(holder=holder, lease_until=until)
            return True
    return _add_slots(name, limit) and _take(name, limit, holder, lease)


def _add_slots(name: str, limit: int) -> bool:
    """Create the missing slots of a tool; return False when there are none."""
    slots = ToolSlot.objects.filter(tool=name, number__lt=limit)
    if slots.count() >= limit:
        return False
    rows = [ToolSlot(tool=name, number=number) for number in range(limit)]
    ToolSlot.objects.bulk_create(rows, ignore_conflicts=True)
    return True


def _give_back(name: str, holder: UUID) -> None:
    slots = ToolSlot.objects.filter(tool=name, holder=holder)
    # The call was made, whatever becomes of its slot, whose lease ends by itself.
    with suppress(Error):
        slots.update(holder=None, lease_until=None)

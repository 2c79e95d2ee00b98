"""Claims of runs, and the clock that their deadlines go by."""

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from diagnostics.clock import DatabaseNow
from diagnostics.store.leases import MAX_STARTS, Claim
from plans.models.run import Run
from plans.runs.sql import statement


def lease() -> timedelta:
    """Return how long a claim lasts without being renewed."""
    return timedelta(seconds=settings.FAILSOFT_RUN_LEASE_SECONDS)


@dataclass(frozen=True, slots=True)
class DatabaseTime:
    """The database's clock as it was read once, and this process's as it goes on."""

    read: float
    read_at: float

    def now(self) -> float:
        """Return the seconds since 1970 by the database's clock."""
        return self.read + time.monotonic() - self.read_at

    def at(self, moment: float) -> float:
        """Return what the database's clock showed at a moment of the monotonic one."""
        return self.read + moment - self.read_at

    def monotonic(self, moment: float) -> float:
        """Return when this process's monotonic clock will show that moment."""
        return self.read_at + moment - self.read


@dataclass(frozen=True, slots=True)
class RunClaim(Claim):
    """A run that this worker holds.

    `starts` counts the claims since the run last got on; `stop_at` is the deadline by
    this process's monotonic clock.
    """

    run: Run
    starts: int
    is_cancelled: bool
    clock: DatabaseTime
    stop_at: float | None


def claim_run(run_id: UUID) -> RunClaim | None:
    """Take a run that is queued or went silent; None when it is not free."""
    given: dict[str, Any] = {"run": run_id, "lease": lease(), "most": MAX_STARTS}
    with connection.cursor() as cursor:
        cursor.execute(statement("claim_run"), given)
        row = cursor.fetchone()
    if row is None:
        return None
    token, starts, is_cancelled, now, deadline = row
    clock = DatabaseTime(now, time.monotonic())
    stop_at = None if deadline is None else clock.monotonic(deadline)
    run = Run.objects.get(pk=run_id)
    held = Run.objects.filter(pk=run_id, state=Run.State.RUNNING, fencing_token=token)
    return RunClaim(held, lease(), token, run, starts, is_cancelled, clock, stop_at)


def claim_poisoned(run_id: UUID) -> RunClaim | None:
    """Take a run whose workers died too often; its starts count anew."""
    with transaction.atomic():
        silent = Run.objects.filter(
            pk=run_id,
            state=Run.State.RUNNING,
            lease_until__lt=DatabaseNow(),
            starts__gte=MAX_STARTS,
        )
        if silent.update(starts=F("starts") - 1) != 1:
            return None
        return claim_run(run_id)

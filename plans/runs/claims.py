"""The right to execute a run: a lease with a fencing token.

Whoever's conditional update changes the row has the run; whoever's token is no longer
the row's has lost it and may write nothing more.
"""

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from diagnostics.clock import DatabaseNow
from plans.models.run import Run
from plans.runs.sql import statement

MAX_STARTS = 3


class RunLeaseLostError(Exception):
    """Another worker has taken over; what this one still does must not be stored."""


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
class RunClaim:
    """A run that this worker holds until it stops renewing.

    `starts` counts the claims since the run last got on; `stop_at` is the deadline by
    this process's monotonic clock.
    """

    run: Run
    token: int
    starts: int
    is_cancelled: bool
    clock: DatabaseTime
    stop_at: float | None

    def renew(self, **changes: object) -> None:
        """Hold the run for another lease, and change columns of its row with it.

        Inside a transaction this is the fence: it locks the row, and raises
        RunLeaseLostError before anything of an older claim is written.
        """
        self._change(lease_until=DatabaseNow() + lease(), **changes)

    def release(self, **changes: object) -> None:
        """Give the run up, changing columns of its row with it; fenced like `renew`."""
        self._change(lease_until=None, **changes)

    def _change(self, **columns: object) -> None:
        held = Run.objects.filter(pk=self.run.pk, state=Run.State.RUNNING, fencing_token=self.token)
        if held.update(**columns) != 1:
            raise RunLeaseLostError(str(self.run.pk))


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
    return RunClaim(run, token, starts, is_cancelled, clock, stop_at)


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

"""Claims of runs, and the clock for their deadlines."""

import time
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F

from diagnostics.clock import DatabaseNow
from diagnostics.store.leases import MAX_STARTS, Claim
from diagnostics.store.sql import execute
from plans.models.run import Run


def lease() -> timedelta:
    """Return how long a claim lasts without being renewed."""
    return timedelta(seconds=settings.FAILSOFT_RUN_LEASE_SECONDS)


@dataclass(frozen=True, slots=True)
class RunClaim(Claim):
    """A run that this worker holds.

    `starts` counts the claims since the run last made progress. `ahead` is the offset of the
    database's clock (seconds since 1970) to the monotonic clock of this process; `stop_at`
    is the deadline on the monotonic clock.
    """

    run: Run
    starts: int
    is_cancelled: bool
    ahead: float
    stop_at: float | None

    def now(self) -> float:
        """Return the seconds since 1970 by the database's clock."""
        return time.monotonic() + self.ahead


def claim_run(run_id: UUID) -> RunClaim | None:
    """Claim a run that is queued or went silent; return None when it is not free."""
    params = {"run": run_id, "lease": lease(), "most": MAX_STARTS}
    row = next(iter(execute("claim_run", params)), None)
    if row is None:
        return None
    token, starts, is_cancelled, now, deadline = row
    ahead = now - time.monotonic()
    stop_at = None if deadline is None else deadline - ahead
    run = Run.objects.get(pk=run_id)
    held_run = Run.objects.filter(pk=run_id, state=Run.State.RUNNING, fencing_token=token)
    return RunClaim(held_run, lease(), token, run, starts, is_cancelled, ahead, stop_at)


def claim_poisoned(run_id: UUID) -> RunClaim | None:
    """Claim a run whose workers died too often, and restart its count."""
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

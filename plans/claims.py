"""The right to execute a run: a lease with a fencing token (C1, C3, C4).

Whoever's conditional update changes the row has the run; whoever's token is no longer
the row's has lost it and may write nothing more.
"""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from diagnostics.clock import DatabaseNow
from plans.models import Run

LEASE = timedelta(seconds=60)
MAX_STARTS = 3


class LeaseLostError(Exception):
    """Another worker has taken over; what this one still does must not be stored."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that this worker holds until it stops renewing."""

    run: Run
    token: int

    def renew(self, lease: timedelta = LEASE, **changes: object) -> None:
        """Hold the run for `lease` from now, and change columns of its row with it.

        Inside a transaction this is the fence: it locks the row, and raises
        LeaseLostError before anything of an older claim is written.
        """
        self._change(lease_until=DatabaseNow() + lease, **changes)

    def release(self, **changes: object) -> None:
        """Give the run up, changing columns of its row with it; fenced like `renew`."""
        self._change(lease_until=None, **changes)

    def read_stop(self) -> str | None:
        """Return why no further tool may be called, if there is a reason (X-6)."""
        row = Run.objects.annotate(now=DatabaseNow()).get(pk=self.run.pk)
        if row.cancel_requested_at is not None:
            return "cancelled"
        if row.deadline_at is not None and row.deadline_at <= row.now:
            return "deadline_reached"
        return None

    def _change(self, **columns: object) -> None:
        held = Run.objects.filter(
            pk=self.run.pk, state=Run.State.RUNNING, fencing_token=self.token
        )
        if held.update(**columns) != 1:
            raise LeaseLostError(str(self.run.pk))


def claim_run(run_id: UUID) -> Claim | None:
    """Take a run that is queued or went silent; None when it is not free."""
    free = Q(state=Run.State.QUEUED) | Q(
        state=Run.State.RUNNING, lease_until__lt=DatabaseNow()
    )
    with transaction.atomic():
        claimed = Run.objects.filter(free, pk=run_id, starts__lt=MAX_STARTS).update(
            state=Run.State.RUNNING,
            lease_until=DatabaseNow() + LEASE,
            fencing_token=F("fencing_token") + 1,
            starts=F("starts") + 1,
            started_at=Coalesce("started_at", DatabaseNow()),
        )
        if claimed != 1:
            return None
        run = Run.objects.get(pk=run_id)
    return Claim(run, run.fencing_token)


def claim_poisoned(run_id: UUID) -> Claim | None:
    """Take a run whose workers died too often, to end it without running its tools."""
    with transaction.atomic():
        claimed = Run.objects.filter(
            pk=run_id,
            state=Run.State.RUNNING,
            lease_until__lt=DatabaseNow(),
            starts__gte=MAX_STARTS,
        ).update(
            lease_until=DatabaseNow() + LEASE, fencing_token=F("fencing_token") + 1
        )
        if claimed != 1:
            return None
        run = Run.objects.get(pk=run_id)
    return Claim(run, run.fencing_token)

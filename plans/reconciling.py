"""Runs whose worker or message went silent are taken up again (C3, C4)."""

from uuid import UUID

from django.db import transaction

from diagnostics.clock import DatabaseNow
from plans.claims import MAX_STARTS
from plans.models import Run
from plans.running import end_poisoned
from plans.submitting import MESSAGE_LEASE, enqueue_run

_BATCH = 100


def reconcile_runs() -> int:
    """Queue again what should be under way and is not; return how many runs were found.

    A run that went silent too often is ended as poison instead.
    """
    poisoned: list[UUID] = []
    with transaction.atomic():
        silent = (
            Run.objects.filter(
                state__in=[Run.State.QUEUED, Run.State.RUNNING],
                lease_until__lt=DatabaseNow(),
            )
            .order_by("lease_until")
            .select_for_update(skip_locked=True)[:_BATCH]
        )
        found = list(silent)
        for run in found:
            if run.starts >= MAX_STARTS and run.state == Run.State.RUNNING:
                poisoned.append(run.id)
            else:
                _requeue(run)
    for run_id in poisoned:
        end_poisoned(run_id)
    return len(found)


def _requeue(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(
        state=Run.State.QUEUED, lease_until=DatabaseNow() + MESSAGE_LEASE
    )
    enqueue_run(run)

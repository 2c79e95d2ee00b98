"""Runs and steps whose worker or message went silent are taken up again (C3, C4)."""

from collections import defaultdict
from uuid import UUID

from django.db import transaction

from diagnostics.clock import DatabaseNow
from plans import working
from plans.claims import MAX_STARTS, lease
from plans.models import Run, RunStep
from plans.runners.plan_cache import plan_of
from plans.runners.settling import Settlement, lock_run
from plans.running import end_poisoned
from plans.submitting import enqueue_run

_BATCH = 100
_STEPS_BATCH = 500


def reconcile_runs() -> int:
    """Queue again what should be under way and is not; return how much was found.

    A run that went silent too often is ended as poison instead.
    """
    return _reconcile_whole_runs() + _reconcile_steps()


def _reconcile_whole_runs() -> int:
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
        state=Run.State.QUEUED, lease_until=DatabaseNow() + lease()
    )
    enqueue_run(run)


def _reconcile_steps() -> int:
    """Take up the steps of distributed runs, run by run, under its lock."""
    silent = RunStep.objects.filter(lease_until__lt=DatabaseNow())
    rows = silent.order_by("lease_until").values_list("run_id", "position")
    of_run: dict[UUID, list[int]] = defaultdict(list)
    for run_id, position in rows[:_STEPS_BATCH]:
        of_run[run_id].append(position)
    for run_id, positions in of_run.items():
        _take_up(run_id, positions)
    return sum(map(len, of_run.values()))


def _take_up(run_id: UUID, positions: list[int]) -> None:
    with transaction.atomic():
        run = lock_run(run_id)
        if run is None:
            return
        try:
            settlement = Settlement(run, plan_of(run))
        except working.WorkingItemMissingError:
            planned = plan_of(run, run.payload)
            settlement = Settlement(run, planned, stopped="payload_lost")
        settlement.settle_silent(positions)

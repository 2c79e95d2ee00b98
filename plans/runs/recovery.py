"""Runs and steps whose worker died or whose message is gone are taken up again.

A worker's row is silent when its lease has ended. A waiting row is silent when its queue has
been drained beyond the lease: until then its message is merely late.
"""

from collections import defaultdict
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from diagnostics.clock import DatabaseNow
from diagnostics.store.queue_marks import drained_until
from plans.models.run import Run, RunStep
from plans.runs import working_store
from plans.runs.claims import MAX_STARTS, lease
from plans.runs.loading import plan_of
from plans.runs.running import end_poisoned
from plans.runs.step_completion import Settlement, lock_run, silent_steps
from plans.runs.submission import QUEUE, enqueue_run

_BATCH = 100
_MOST_BATCHES = 10
_STEPS_BATCH = 500


def reconcile_runs() -> int:
    """Queue again what should be under way and is not; return how much was found.

    A run that went silent too often is ended as poison instead.
    """
    count = _reconcile_steps()
    for _ in range(_MOST_BATCHES):
        taken_up = _reconcile_whole_runs()
        count += taken_up
        if taken_up < _BATCH:
            break
    return count


def _silent_runs() -> Q:
    waits = Q(state=Run.State.QUEUED, lease_until__lt=drained_until(QUEUE))
    return waits | Q(state=Run.State.RUNNING, lease_until__lt=DatabaseNow())


def _reconcile_whole_runs() -> int:
    poisoned: list[UUID] = []
    with transaction.atomic():
        silent = Run.objects.filter(_silent_runs()).order_by("lease_until")
        runs = list(silent.select_for_update(skip_locked=True, of=("self",))[:_BATCH])
        for run in runs:
            if run.starts >= MAX_STARTS and run.state == Run.State.RUNNING:
                poisoned.append(run.id)
            else:
                _requeue(run)
    for run_id in poisoned:
        end_poisoned(run_id)
    return len(runs)


def _requeue(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(
        state=Run.State.QUEUED, lease_until=DatabaseNow() + lease()
    )
    enqueue_run(run)


def _reconcile_steps() -> int:
    """Take up the steps of distributed runs, run by run, under its lock."""
    silent = RunStep.objects.filter(silent_steps())
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
        except working_store.WorkingItemMissingError:
            planned = plan_of(run, run.payload)
            settlement = Settlement(run, planned, stopped="payload_lost")
        settlement.settle_silent(positions)

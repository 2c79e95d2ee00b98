"""Runs and steps whose worker died or whose message is gone are taken up again."""

from collections import defaultdict
from uuid import UUID

from django.db.models import Q

from diagnostics.clock import DatabaseNow
from diagnostics.store.leases import silent, take_up
from plans.models.run import Run, RunStep
from plans.runs.claims import lease
from plans.runs.running import end_poisoned
from plans.runs.step_completion import settling, silent_steps
from plans.runs.submission import QUEUE, enqueue_run

_STEPS_BATCH = 500
_WORKING = Q(state=Run.State.RUNNING)


def reconcile_runs() -> int:
    """Queue again what should be under way and is not; return how much was found.

    A run that went silent too often is ended as poison instead.
    """
    runs = Run.objects.filter(silent(Q(state=Run.State.QUEUED), _WORKING, QUEUE))
    return _reconcile_steps() + take_up(runs, _WORKING, _queue_again, end_poisoned)


def _queue_again(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(
        state=Run.State.QUEUED, lease_until=DatabaseNow() + lease()
    )
    enqueue_run(run)


def _reconcile_steps() -> int:
    """Take up the steps of distributed runs, run by run, under its lock."""
    steps = RunStep.objects.filter(silent_steps())
    rows = steps.order_by("lease_until").values_list("run_id", "position")
    of_run: dict[UUID, list[int]] = defaultdict(list)
    for run_id, position in rows[:_STEPS_BATCH]:
        of_run[run_id].append(position)
    for run_id, positions in of_run.items():
        with settling(run_id) as settlement:
            if settlement is not None:
                settlement.settle_silent(positions)
    return sum(map(len, of_run.values()))

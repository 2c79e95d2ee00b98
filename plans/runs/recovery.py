"""Recovery of runs and steps whose worker died or whose message was lost."""

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
    """Requeue stalled runs and steps; return how many there were.

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
    """Requeue or settle silent steps of distributed runs, each run under its lock."""
    steps = RunStep.objects.filter(silent_steps())
    rows = steps.order_by("lease_until").values_list("run_id", "position")
    positions_by_run: dict[UUID, list[int]] = defaultdict(list)
    for run_id, position in rows[:_STEPS_BATCH]:
        positions_by_run[run_id].append(position)
    for run_id, positions in positions_by_run.items():
        with settling(run_id) as settlement:
            if settlement is not None:
                settlement.settle_silent(positions)
    return sum(map(len, positions_by_run.values()))

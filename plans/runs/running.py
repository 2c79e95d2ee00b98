"""Executing runs: the worker that gets the claim hands the plan to its runner.

Safe to call any number of times, in any number of processes. Runs and steps whose worker died,
or whose message was lost, are queued again.
"""

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

import structlog
from django.db.models import Q

from diagnostics.clock import DatabaseNow
from diagnostics.outbound.credentials import WorkingKeyError
from diagnostics.redaction.rules import texts_of
from diagnostics.store.leases import LeaseLostError, silent, take_up
from plans.models.run import Run, RunStep
from plans.runs import distributed as distributed_runner
from plans.runs import working_store
from plans.runs.claims import RunClaim, claim_poisoned, claim_run, find_misfit, lease, refuse
from plans.runs.inline import InlineRun
from plans.runs.records import POISON
from plans.runs.step_completion import settling, silent_steps
from plans.runs.submission import QUEUE, enqueue_run

_STEPS_BATCH = 500
_WORKING = Q(state=Run.State.RUNNING)


logger = structlog.get_logger(__name__)


def execute_run(run_id: UUID) -> None:
    """Execute a run to its end, or as far as one task may go."""
    run = Run.objects.filter(pk=run_id).first()
    if run is not None and _fits(run):
        _go_on(claim_run(run_id))


def execute_steps(run_id: UUID, positions: Sequence[int]) -> None:
    """Execute ready steps of a distributed run; the rows decide which still need it."""
    distributed = Run.objects.filter(pk=run_id, runner=Run.Runner.DISTRIBUTED)
    run = distributed.filter(state=Run.State.RUNNING).first()
    if run is not None and _fits(run):
        with texts_of(run.project_id):
            distributed_runner.execute_steps(run, positions)


def end_poisoned(run_id: UUID) -> None:
    """Queue a run that killed its workers, without the step that did it; no tool is called.

    When no such step is known, every step is settled.
    """
    _go_on(claim_poisoned(run_id), POISON)


def _go_on(claim: RunClaim | None, give_up_reason: str | None = None) -> None:
    if claim is None:
        return
    try:
        with texts_of(claim.run.project_id):
            _hand_over(claim, give_up_reason)
    except LeaseLostError:
        logger.warning("run_lease_lost", run_id=str(claim.run.pk))


def _hand_over(claim: RunClaim, give_up_reason: str | None) -> None:
    run = claim.run
    try:
        payload = working_store.get(run, "payload")
    except working_store.UNREADABLE as error:
        # Another worker may have the key; not after so many.
        if isinstance(error, WorkingKeyError) and give_up_reason is None:
            raise
        # The redacted payload has the same steps, and is readable without a key.
        payload, give_up_reason = run.payload, "payload_lost"
    if run.runner == Run.Runner.DISTRIBUTED:
        distributed_runner.begin(claim, payload, give_up_reason=give_up_reason)
        return
    inline_run = InlineRun(claim, payload)
    if give_up_reason is None:
        inline_run.go_on()
    elif give_up_reason != POISON or not inline_run.settle_poison():
        inline_run.give_up(give_up_reason)


def _fits(run: Run) -> bool:
    """Whether this process may execute the run; if not, store why.

    A cancelled run needs no tools, so every worker may end it.
    """
    misfit = None if run.cancel_requested_at else find_misfit(run)
    if misfit is not None:
        refuse(run, misfit)
    return misfit is None


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
        try:
            with settling(run_id) as settlement:
                if settlement is not None:
                    settlement.settle_silent(positions)
        except WorkingKeyError:
            # Other runs do not wait for its key.
            logger.exception("run_cannot_be_read", run_id=str(run_id))
            RunStep.objects.filter(run=run_id, position__in=positions).update(
                lease_until=DatabaseNow() + lease()
            )
    return sum(map(len, positions_by_run.values()))

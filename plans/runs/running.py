"""Executing runs: whoever gets the claim reads the plan and hands it to its runner.

Safe to call any number of times, in any number of processes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

import structlog

from diagnostics.store.leases import LeaseLostError
from plans.models.run import Run
from plans.runs import distributed as distributed_runner
from plans.runs import working_store
from plans.runs.claims import RunClaim, claim_poisoned, claim_run
from plans.runs.ending import POISON
from plans.runs.inline import InlineRun
from plans.runs.pinning import find_misfit, refuse
from plans.runs.submission import owner_of

logger = structlog.get_logger(__name__)


def execute_run(run_id: UUID) -> None:
    """Execute a run to its end, or as far as one task may go."""
    run = Run.objects.filter(pk=run_id).first()
    claim = claim_run(run_id) if run and _fits(run) else None
    if claim is not None:
        with _noting_lost_lease(run_id):
            _go_on(claim)


def execute_steps(run_id: UUID, positions: Sequence[int]) -> None:
    """Execute ready steps of a distributed run; the rows say which still want it."""
    distributed = Run.objects.filter(pk=run_id, runner=Run.Runner.DISTRIBUTED)
    run = distributed.filter(state=Run.State.RUNNING).first()
    if run is not None and _fits(run):
        distributed_runner.execute_steps(run, positions)


def end_poisoned(run_id: UUID) -> None:
    """Go on with a run that killed its workers, without what is to blame.

    When no step is to blame, every step gets a row and no tool is called.
    """
    claim = claim_poisoned(run_id)
    if claim is None:
        return
    with _noting_lost_lease(run_id):
        _go_on(claim, is_poisoned=True)


def _go_on(claim: RunClaim, *, is_poisoned: bool = False) -> None:
    run = claim.run
    give_up = POISON if is_poisoned else None
    try:
        payload = working_store.get(run.project_id, owner_of(run.id), "payload")
    except working_store.WorkingItemMissingError:
        # The shown payload has the same steps, and can be read without a key.
        payload, give_up = run.payload, "payload_lost"
    if run.runner == Run.Runner.DISTRIBUTED:
        distributed_runner.begin(claim, payload, give_up=give_up)
    else:
        _go_on_inline(InlineRun(claim, payload), give_up)


def _go_on_inline(work: InlineRun, give_up: str | None) -> None:
    if give_up is None or (give_up == POISON and work.knows_whom_to_blame):
        work.go_on()
    else:
        work.give_up(give_up)


def _fits(run: Run) -> bool:
    """Whether this process has what the run began with; if not, the run says why.

    Who ends a cancelled run needs no tool.
    """
    misfit = None if run.cancel_requested_at else find_misfit(run)
    if misfit is not None:
        refuse(run, misfit)
    return misfit is None


@contextmanager
def _noting_lost_lease(run_id: UUID) -> Iterator[None]:
    try:
        yield
    except LeaseLostError:
        logger.warning("run_lease_lost", run_id=str(run_id))

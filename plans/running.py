"""Executing runs: whoever gets the claim reads the plan and hands it to its runner.

Safe to call any number of times, in any number of processes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import structlog

from plans import working
from plans.claims import Claim, LeaseLostError, claim_poisoned, claim_run
from plans.runners.ending import POISON
from plans.runners.inline import InlineRun
from plans.submitting import owner_of

logger = structlog.get_logger(__name__)


def execute_run(run_id: UUID) -> None:
    """Execute a run to its end, or as far as one task may go."""
    claim = claim_run(run_id)
    if claim is not None:
        with _noting_lost_lease(run_id):
            _go_on(claim)


def end_poisoned(run_id: UUID) -> None:
    """Go on with a run that killed its workers, without what is to blame.

    When no step is to blame, every step gets a row and no tool is called.
    """
    claim = claim_poisoned(run_id)
    if claim is None:
        return
    with _noting_lost_lease(run_id):
        _go_on(claim, is_poisoned=True)


def _go_on(claim: Claim, *, is_poisoned: bool = False) -> None:
    run = claim.run
    try:
        payload = working.get(run.project_id, owner_of(run.id), "payload")
    except working.WorkingItemMissingError:
        # The shown payload has the same steps, and can be read without a key.
        InlineRun(claim, run.payload).give_up("payload_lost")
    else:
        work = InlineRun(claim, payload)
        if is_poisoned and not work.knows_whom_to_blame:
            work.give_up(POISON)
        else:
            work.go_on()


@contextmanager
def _noting_lost_lease(run_id: UUID) -> Iterator[None]:
    try:
        yield
    except LeaseLostError:
        logger.warning("run_lease_lost", run_id=str(run_id))

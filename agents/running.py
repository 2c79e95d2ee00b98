"""One goal through plan, do, check and act: the routes of the graph decide what follows.

1. Claim the goal; without a claim there is nothing to do.
2. Enter the graph where the row says: at planning, or at the check of a run that has ended.
3. Walk it node by node. A submitted plan suspends the walk: its run enqueues this goal again.
4. `respond_node` ends the goal, or lets it wait for the user, with the terminal event in the same
   transaction. Every write is fenced by the claim.
"""

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

import structlog
from django.db import DatabaseError

from agents.claims import LeaseLostError, claim_goal, claim_poisoned
from agents.core.routing import ROUTES, Node
from agents.nodes.acting import act
from agents.nodes.checking import check
from agents.nodes.executing import execute
from agents.nodes.planning import plan
from agents.nodes.responding import respond
from agents.nodes.walk import Walk
from agents.policies import without_wait
from plans.models import Run

logger = structlog.get_logger(__name__)

NODES: dict[Node, Callable[[Walk], None]] = {
    Node.NEXT_STEP: plan,
    Node.EXECUTE_STEP: execute,
    Node.CHECK: check,
    Node.ACT: act,
    Node.RESPOND: respond,
}


def run_goal(goal_id: UUID) -> None:
    """Move a goal as far as it goes now; safe to call any number of times, anywhere."""
    claim = claim_goal(goal_id)
    if claim is None:
        return
    try:
        _go_on(Walk.of(claim))
    except LeaseLostError:
        logger.warning("goal_lease_lost", goal_id=str(goal_id))
    except BaseException:
        # Without a database the lease runs out by itself.
        with suppress(DatabaseError):
            claim.drop()
        raise


def end_poisoned(goal_id: UUID) -> None:
    """End a goal that killed its workers, without asking anybody (C4)."""
    claim = claim_poisoned(goal_id)
    if claim is None:
        return
    walk = Walk.of(claim)
    walk.state = walk.state.unfinished({"reason": "poison", "starts": claim.goal.starts})
    respond(walk)
    logger.error("goal_poisoned", goal_id=str(goal_id))


def _go_on(walk: Walk) -> None:
    """Walk from the entry to the end, or to where the goal has to wait."""
    _settle_wait(walk)
    node = _entry(walk)
    while node is not Node.END and not walk.is_suspended:
        NODES[node](walk)
        node = ROUTES[node](walk.state)


def _settle_wait(walk: Walk) -> None:
    budget = without_wait(walk.goal, walk.claim.taken_at)
    if budget != walk.goal.budget:
        walk.goal.budget = budget
        walk.claim.renew(budget=budget)


def _entry(walk: Walk) -> Node:
    run = walk.goal.current_run
    if run is not None and run.state not in (Run.State.ENDED, Run.State.POISON):
        walk.claim.release()
        return Node.END
    if walk.claim.is_cancelled():
        walk.cancel()
        return Node.RESPOND
    return Node.NEXT_STEP if run is None else Node.CHECK

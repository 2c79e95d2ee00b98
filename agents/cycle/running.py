"""One goal through plan, do, check and act, along the routes of a graph.

1. Claim the goal; without a claim there is nothing to do.
2. Enter the graph where the row says: at planning, or at the check of a run that has ended.
3. Walk it node by node. A submitted plan suspends the walk: its run enqueues this goal again.
4. `respond_node` ends the goal, or lets it wait for the user, with the terminal event in the same
   transaction. Every write is fenced by the claim.
5. A goal whose worker died, or whose message is gone, is queued again.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

import structlog
from django.db import Error
from django.db.models import Q

from agents.cycle.nodes import act, check, execute, respond
from agents.cycle.plan_node import plan
from agents.cycle.walk import Walk
from agents.goals.claims import claim_goal, claim_poisoned, is_stopped
from agents.goals.models import Goal
from agents.goals.policies import without_wait
from agents.goals.state import Status, TaskState
from agents.goals.submission import MESSAGE_LEASE, QUEUE, enqueue_goal
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.rules import texts_of
from diagnostics.store.leases import UNFINISHED, LeaseLostError, drained_until, silent, take_up
from plans.models.run import Run


class CycleNode(StrEnum):
    """Every node of the graph; `END` has no function."""

    NEXT_STEP = "next_step_node"
    EXECUTE_STEP = "execute_step_node"
    CHECK = "check_node"
    ACT = "act_node"
    RESPOND = "respond_node"
    END = "end"


def route_after_next_step(state: TaskState) -> CycleNode:
    is_over = state.status.is_terminal or state.status is Status.WAITING_USER
    return CycleNode.RESPOND if is_over else CycleNode.EXECUTE_STEP


def route_after_execute_step(state: TaskState) -> CycleNode:
    return CycleNode.RESPOND if state.status.is_terminal else CycleNode.CHECK


def route_after_check(state: TaskState) -> CycleNode:
    return CycleNode.RESPOND if state.status.is_terminal else CycleNode.ACT


def route_after_act(state: TaskState) -> CycleNode:
    return CycleNode.NEXT_STEP if state.status is Status.RUNNING else CycleNode.RESPOND


ROUTES: dict[CycleNode, Callable[[TaskState], CycleNode]] = {
    CycleNode.NEXT_STEP: route_after_next_step,
    CycleNode.EXECUTE_STEP: route_after_execute_step,
    CycleNode.CHECK: route_after_check,
    CycleNode.ACT: route_after_act,
    # The response is the last node.
    CycleNode.RESPOND: lambda _: CycleNode.END,
}
# The outbox announces a run's end; this is for a message that was lost.
_RUN_ENDED_LONG_AGO = timedelta(seconds=60)
_WORKING = Q(status=Goal.Status.RUNNING)


logger = structlog.get_logger(__name__)
NODES: dict[CycleNode, Callable[[Walk], None]] = {
    CycleNode.NEXT_STEP: plan,
    CycleNode.EXECUTE_STEP: execute,
    CycleNode.CHECK: check,
    CycleNode.ACT: act,
    CycleNode.RESPOND: respond,
}


def run_goal(goal_id: UUID) -> None:
    """Move a goal as far as it goes now; safe to call any number of times, anywhere."""
    claim = claim_goal(goal_id)
    if claim is None:
        return
    try:
        with texts_of(claim.goal.project_id):
            _walk_on(Walk.of(claim))
    except LeaseLostError:
        logger.warning("goal_lease_lost", goal_id=str(goal_id))
    except BaseException:
        # Without a database the lease runs out by itself.
        with suppress(Error):
            claim.drop()
        raise


def end_poisoned(goal_id: UUID) -> None:
    """End a goal that killed its workers, without calling a model."""
    claim = claim_poisoned(goal_id)
    if claim is None:
        return
    walk = Walk.of(claim)
    walk.state = walk.state.unfinished({"reason": "poison", "starts": claim.goal.starts})
    with texts_of(claim.goal.project_id):
        respond(walk)
    logger.error("goal_poisoned", goal_id=str(goal_id))


def _walk_on(walk: Walk) -> None:
    budget = without_wait(walk.goal, walk.claim.taken_at)
    if budget != walk.goal.budget:
        walk.goal.budget = budget
        walk.claim.renew(budget=budget)
    node = _entry(walk)
    while node is not CycleNode.END and not walk.is_suspended:
        NODES[node](walk)
        node = ROUTES[node](walk.state)


def _entry(walk: Walk) -> CycleNode:
    run = walk.goal.current_run
    if run is not None and run.state not in (Run.State.ENDED, Run.State.POISON):
        walk.claim.release(starts=0)
        return CycleNode.END
    if walk.claim.is_cancelled():
        walk.cancel()
        return CycleNode.RESPOND
    return CycleNode.NEXT_STEP if run is None else CycleNode.CHECK


def reconcile_goals() -> int:
    """Requeue goals that should be running and are not; return how many there were.

    A goal that went silent too often ends as poison instead.
    """
    waiting = Q(status=Goal.Status.QUEUED) & (~is_stopped() | Q(cancel_requested_at__isnull=False))
    forgotten = Q(
        lease_until__isnull=True,
        current_run__state__in=[Run.State.ENDED, Run.State.POISON],
        current_run__ended_at__lt=drained_until(QUEUE) - _RUN_ENDED_LONG_AGO,
    )
    # As the partial index has it.
    unfinished = Goal.objects.filter(status__in=UNFINISHED)
    stalled = unfinished.filter(silent(waiting, _WORKING, QUEUE) | forgotten)
    return take_up(stalled, _WORKING, _queue_again, end_poisoned)


def _queue_again(goal: Goal) -> None:
    Goal.objects.filter(pk=goal.pk).update(
        status=Goal.Status.QUEUED, lease_until=DatabaseNow() + MESSAGE_LEASE
    )
    enqueue_goal(goal)

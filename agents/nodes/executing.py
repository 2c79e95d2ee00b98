"""`execute_step_node`: hand the plan to the runner, or apply the actions."""

from django.db import transaction

from agents.applying import apply_actions
from agents.core.actions import ParseResult
from agents.core.interpreting import Schema
from agents.core.proposals import payload_of
from agents.models import Goal
from agents.nodes.walk import Walk
from agents.policies import deadline_of
from agents.submitting import RUN_TASK
from plans.submitting import submit_run


def execute(walk: Walk) -> None:
    """Hand the plan over to the runner, which enqueues this goal when the run has ended."""
    if walk.claim.is_cancelled():
        walk.cancel()
        return
    if walk.schema is Schema.ACTIONS:
        _apply(walk)
        return
    payload = payload_of(walk.decision)
    if payload is None:
        return
    goal = walk.goal
    walk.is_suspended = True
    with transaction.atomic():
        run = submit_run(
            goal.project_id,
            payload,
            goal.correlation_id,
            cycle=goal.cycle,
            on_end_task=RUN_TASK,
            on_end_args={"goal_id": str(goal.pk)},
            deadline_at=deadline_of(goal),
            runner=goal.runner,
        )
        walk.claim.release(
            current_run=run,
            pdca_phase=Goal.Phase.DO,
            last_validation_error=None,
            execution_eval=None,
            next_user_question=None,
        )


def _apply(walk: Walk) -> None:
    """Apply what was decoded, once; what was done is what the person is told (S4-20)."""
    with transaction.atomic():
        walk.claim.renew(pdca_phase=Goal.Phase.DO)
        walk.batch = apply_actions(walk.goal, ParseResult.from_json(walk.decision))
    walk.decision = {"answer": walk.batch.summary}

"""`act_node`: finish, go round once more, or give up and say why (X-10, X-11)."""

from typing import Any

from agents.core.task_state import Phase, Status, TaskState
from agents.models import Goal
from agents.nodes.walk import Walk
from agents.policies import owner_of
from plans.check_rows import found_by
from plans.core.completion.loops import Move, Turn, next_turn
from plans.core.completion.specification import CheckSpec
from plans.models import CompletionCheck


def act(walk: Walk) -> None:
    """Act on what was found in this cycle."""
    found = walk.state.execution_eval or {}
    if walk.checked is not None:
        _follow_check(walk, walk.checked, found)
    elif found.get("complete"):
        _complete(walk, found)
    elif walk.batch is not None or walk.goal.cycle >= walk.goal.max_iterations:
        _end_unfinished(walk, found)
    else:
        _begin_cycle(walk, found)


def _follow_check(walk: Walk, row: CompletionCheck, found: dict[str, Any]) -> None:
    turn = _turn_after(walk.goal, row)
    told = {**found, "reason": turn.code, "message": turn.reason} if turn.code else found
    match turn.move:
        case Move.FINISH | Move.END:
            _complete(walk, told)
        case Move.AGAIN:
            _begin_cycle(walk, told)
        case Move.FAIL if turn.code == "max_iterations_reached":
            _end_unfinished(walk, told)
        case Move.FAIL:
            walk.state = walk.state.unfinished(told)


def _end_unfinished(walk: Walk, found: dict[str, Any]) -> None:
    """No cycle is left; when the last one was cut short by its deadline, that is the reason."""
    run = walk.goal.current_run
    late = run is not None and run.steps.filter(reason="deadline_reached").exists()
    walk.state = (walk.state.out_of_time if late else walk.state.unfinished)(found)


def _turn_after(goal: Goal, row: CompletionCheck) -> Turn:
    if row.state == CompletionCheck.State.FAILED:
        return Turn(Move.FAIL, "checker_failed", row.reason)
    spec = CheckSpec.model_validate(goal.completion_check)
    found = found_by(goal.project_id, owner_of(goal))
    return next_turn(spec, found, goal.cycle, goal.max_iterations)


def _complete(walk: Walk, found: dict[str, Any]) -> None:
    walk.state = walk.state.model_copy(
        update={
            "status": Status.COMPLETED,
            "pdca_phase": Phase.ACT,
            "execution_eval": found,
        }
    )


def _begin_cycle(walk: Walk, found: dict[str, Any]) -> None:
    walk.goal.cycle += 1
    walk.goal.current_run = None
    walk.state = TaskState(cycle=walk.goal.cycle, execution_eval=found)
    walk.decision = {}
    walk.checked = None
    walk.claim.renew(
        cycle=walk.goal.cycle,
        current_run=None,
        pdca_phase=Goal.Phase.PLAN,
        execution_eval=found,
    )

"""`check_node`: find whether the goal is reached, by its check, its planner's word or its run."""

from typing import Any

from agents.applying import evaluate_actions
from agents.asking import PutOffError, ask_model
from agents.check_events import record_check
from agents.claims import kept_alive
from agents.core.interpreting import Schema
from agents.core.task_state import Phase
from agents.models import Goal
from agents.nodes.planning import put_off
from agents.nodes.walk import Walk
from agents.policies import is_time_over, owner_of
from agents.reading import decision_record, owners_of_workspaces
from plans import working
from plans.check_rows import Loop, check_once
from plans.checking import Subject
from plans.core.completion.specification import CheckSpec
from plans.models import CompletionCheck, Run
from plans.reading import results_of
from plans.workspaces import part_by_project


def check(walk: Walk) -> None:
    """Find what this cycle came to, and keep it as `execution_eval`."""
    run = walk.goal.current_run
    found: dict[str, Any] = {
        "cycle": walk.goal.cycle,
        "complete": walk.decision.get("kind") == "finish",
    }
    if walk.batch is not None:
        found |= evaluate_actions(walk.batch)
    if run is not None:
        found |= _describe_run(walk, run)
    spec = _spec_of(walk, run)
    if spec is not None and walk.claim.is_cancelled():
        walk.cancel()
        return
    if spec is not None and spec.kind == "model" and is_time_over(walk.goal):
        walk.state = walk.state.out_of_time(found)
        return
    if spec is not None:
        try:
            walk.checked = _ask(walk, spec, run)
        except PutOffError as error:
            walk.is_suspended = put_off(walk, error.wait_seconds)
            if not walk.is_suspended:
                walk.state = walk.state.unfinished({**found, "reason": "circuit_open"})
            return
        found |= {
            "complete": walk.checked.decision == CompletionCheck.Decision.COMPLETE,
            "check": decision_record(walk.checked),
        }
    walk.state = walk.state.model_copy(update={"pdca_phase": Phase.CHECK, "execution_eval": found})


def _describe_run(walk: Walk, run: Run) -> dict[str, Any]:
    completed = run.task_status == Run.TaskStatus.COMPLETED
    return {
        "run_id": str(run.pk),
        "task_status": run.task_status,
        "reason": (run.meta or {}).get("reason"),
        "complete": completed and walk.schema is Schema.PLAN,
    }


def _spec_of(walk: Walk, run: Run | None) -> CheckSpec | None:
    """The check to be made now: after the run of a plan, or when the planner says finish."""
    goal = walk.goal
    is_due = walk.schema is Schema.PLAN if run else walk.decision.get("kind") == "finish"
    if goal.completion_check is None or not is_due:
        return None
    raw = working.get(goal.project_id, owner_of(goal), "goal")
    return CheckSpec.model_validate(raw["completion_check"])


def _ask(walk: Walk, spec: CheckSpec, run: Run | None) -> CompletionCheck:
    goal = walk.goal
    walk.claim.renew(pdca_phase=Goal.Phase.CHECK)
    part_by_project(owners_of_workspaces)
    loop = Loop(
        project_id=goal.project_id,
        owner=owner_of(goal),
        correlation_id=goal.correlation_id,
        fence=walk.claim.renew,
        on_settled=lambda row: record_check(goal, row),
    )
    subject = Subject(
        workspace=str(goal.pk),
        goal=goal.text_preview,
        iteration=goal.cycle,
        results=results_of(run) if run else [],
        task_status=run.task_status if run else None,
        project_id=goal.project_id,
    )
    with kept_alive(walk.claim):
        return check_once(
            loop,
            spec,
            subject,
            cycle=goal.cycle,
            run_id=run.pk if run else None,
            ask_model=ask_model(walk.claim),
        )

"""The nodes that check, act, execute and respond; each moves a goal's state one step."""

from typing import Any

from django.db import transaction

from agents.actions.applying import apply_actions, evaluate_actions
from agents.cycle.model_check import OutOfBudgetError, PutOffError, ask_model
from agents.cycle.plan_node import put_off
from agents.cycle.walk import Walk, outcome_of, record_end
from agents.goals.claims import RENEW_SECONDS
from agents.goals.events import record_check
from agents.goals.models import Goal
from agents.goals.policies import deadline_of
from agents.goals.records import decision_record, owners_of_workspaces
from agents.goals.state import Phase, Status, TaskState
from agents.goals.state import respond as compose
from agents.goals.submission import RUN_TASK
from diagnostics import clock
from diagnostics.redaction.redactor import redact
from diagnostics.store.leases import kept_alive
from failsoft.actions import ParseResult
from failsoft.completion.specification import CheckSpec
from failsoft.completion.verdicts import Move, NextMove, next_turn
from failsoft.json_values import clean_text
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.proposals import payload_of
from plans.checks.checking import CheckedWork
from plans.checks.rows import Loop, check_once, decided_checks_of
from plans.checks.workspaces import part_by_project
from plans.models.check import CompletionCheck
from plans.models.run import Run
from plans.runs import working_store
from plans.runs.records import results_of
from plans.runs.submission import submit_run

_COMPLETE = {"status": Status.COMPLETED, "pdca_phase": Phase.ACT}


def act(walk: Walk) -> None:
    evaluation = walk.state.execution_eval or {}
    if walk.checked is not None:
        _follow_check(walk, walk.checked, evaluation)
    elif evaluation.get("complete"):
        walk.move(**_COMPLETE, execution_eval=evaluation)
    elif walk.batch is not None or walk.goal.cycle >= walk.goal.max_iterations:
        _end_unfinished(walk, evaluation)
    else:
        _begin_cycle(walk, evaluation)


def _follow_check(walk: Walk, row: CompletionCheck, evaluation: dict[str, Any]) -> None:
    next_move = _turn_after(walk.goal, row)
    if next_move.code:
        evaluation = {**evaluation, "reason": next_move.code, "message": next_move.reason}
    match next_move.move:
        case Move.FINISH | Move.END:
            walk.move(**_COMPLETE, execution_eval=evaluation)
        case Move.AGAIN:
            _begin_cycle(walk, evaluation)
        case Move.FAIL if next_move.code == "max_iterations_reached":
            _end_unfinished(walk, evaluation)
        case Move.FAIL:
            walk.state = walk.state.unfinished(evaluation)


def _end_unfinished(walk: Walk, evaluation: dict[str, Any]) -> None:
    """Fail: no cycle is left. If the deadline cut the last run short, that is the reason."""
    run = walk.goal.current_run
    late = run is not None and run.steps.filter(reason="deadline_reached").exists()
    walk.state = (walk.state.out_of_budget if late else walk.state.unfinished)(evaluation)


def _turn_after(goal: Goal, row: CompletionCheck) -> NextMove:
    if row.state == CompletionCheck.State.FAILED:
        return NextMove(Move.FAIL, "checker_failed", row.reason)
    spec = CheckSpec.model_validate(goal.completion_check)
    findings = decided_checks_of(goal)
    return next_turn(spec, findings, goal.cycle, goal.max_iterations)


def _begin_cycle(walk: Walk, evaluation: dict[str, Any]) -> None:
    walk.goal.cycle += 1
    walk.goal.current_run = None
    walk.state = TaskState(cycle=walk.goal.cycle, execution_eval=evaluation)
    walk.decision = {}
    walk.checked = None
    walk.claim.renew(
        cycle=walk.goal.cycle,
        current_run=None,
        pdca_phase=Goal.Phase.PLAN,
        execution_eval=evaluation,
    )


@transaction.atomic
def execute(walk: Walk) -> None:
    """Submit the plan to the runner, which enqueues this goal when the run has ended."""
    # Locks the row: a cancellation comes before the run, or finds and stops it.
    walk.claim.renew()
    if walk.claim.is_cancelled():
        walk.cancel()
        return
    if walk.schema is PlannerSchema.ACTIONS:
        # Applied once; their summary is the answer to the user.
        walk.claim.renew(pdca_phase=Goal.Phase.DO)
        walk.batch = apply_actions(walk.goal, ParseResult.from_json(walk.decision))
        walk.decision = {"answer": walk.batch.summary}
        return
    payload = payload_of(walk.decision)
    if payload is None:
        return
    goal = walk.goal
    walk.is_suspended = True
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
        starts=0,
        current_run=run,
        pdca_phase=Goal.Phase.DO,
        last_validation_error=None,
        execution_eval=None,
        next_user_question=None,
    )


ANSWER_BYTES = 8 * 1024


@transaction.atomic
def respond(walk: Walk) -> None:
    """End the goal, or let it wait; one transaction, fenced by the claim."""
    goal = walk.goal
    if walk.state.status is Status.WAITING_USER:
        # Locks the row: from here on a cancellation finds a goal that waits.
        walk.claim.renew()
        if walk.claim.is_cancelled():
            walk.cancel()
    outcome = outcome_of(walk)
    answer = walk.decision.get("answer") or None
    shown_answer = redact(clean_text(answer), ANSWER_BYTES) if answer else None
    message = compose(walk.state, outcome, goal.correlation_id, shown_answer)
    columns = walk.state.model_dump(mode="json", exclude={"cycle"})
    if walk.state.status.is_terminal:
        columns |= {"outcome": outcome, "ended_at": clock.now()}
        working_store.expire(goal)
    walk.claim.release(starts=0, **columns, user_text=message.text, help=list(message.help))
    record_end(walk)


def check(walk: Walk) -> None:
    run = walk.goal.current_run
    evaluation: dict[str, Any] = {
        "cycle": walk.goal.cycle,
        "complete": walk.decision.get("kind") == "finish",
    }
    if walk.batch is not None:
        evaluation |= evaluate_actions(walk.batch)
    if run is not None:
        completed = run.task_status == Run.TaskStatus.COMPLETED
        evaluation |= {
            "run_id": str(run.pk),
            "task_status": run.task_status,
            "reason": (run.meta or {}).get("reason"),
            "complete": completed and walk.schema is PlannerSchema.PLAN,
        }
    spec = _spec_of(walk, run)
    if spec is not None and walk.claim.is_cancelled():
        walk.cancel()
        return
    if spec is not None:
        try:
            walk.checked = _ask(walk, spec, run)
        except OutOfBudgetError as error:
            walk.state = walk.state.out_of_budget(evaluation, str(error))
            return
        except PutOffError as error:
            walk.is_suspended = put_off(walk, error.wait_seconds)
            if not walk.is_suspended:
                walk.state = walk.state.unfinished({**evaluation, "reason": "circuit_open"})
            return
        evaluation |= {
            "complete": walk.checked.decision == CompletionCheck.Decision.COMPLETE,
            "check": decision_record(walk.checked),
        }
    walk.move(pdca_phase=Phase.CHECK, execution_eval=evaluation)


def _spec_of(walk: Walk, run: Run | None) -> CheckSpec | None:
    """Return the check that is due: after the run of a plan, or when the planner says finish."""
    goal = walk.goal
    is_due = walk.schema is PlannerSchema.PLAN if run else walk.decision.get("kind") == "finish"
    if goal.completion_check is None or not is_due:
        return None
    raw = working_store.get(goal, "goal")
    return CheckSpec.model_validate(raw["completion_check"])


def _ask(walk: Walk, spec: CheckSpec, run: Run | None) -> CompletionCheck:
    goal = walk.goal
    walk.claim.renew(pdca_phase=Goal.Phase.CHECK)
    part_by_project(owners_of_workspaces)
    loop = Loop(
        of=goal,
        correlation_id=goal.correlation_id,
        fence=walk.claim.renew,
        on_settled=lambda row: record_check(goal, row),
    )
    subject = CheckedWork(
        workspace=str(goal.pk),
        goal=goal.text_preview,
        iteration=goal.cycle,
        results=results_of(run) if run else [],
        task_status=run.task_status if run else None,
        project_id=goal.project_id,
    )
    with kept_alive(RENEW_SECONDS, walk.claim.renew):
        return check_once(
            loop,
            spec,
            subject,
            cycle=goal.cycle,
            run_id=run.pk if run else None,
            ask_model=ask_model(walk.claim),
        )

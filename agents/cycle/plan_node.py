"""`next_step_node`: ask the model for a plan, or use the one submitted with the goal."""

import secrets
from datetime import timedelta
from typing import Any

import structlog
from django.db import transaction

from agents.actions.applying import apply_actions
from agents.cycle.planner_input import fill_plan, request_of
from agents.cycle.planning import CALLS, generate_plan_with_retry
from agents.cycle.walk import STUB, Walk, record_attempts
from agents.goals.events import model_name, provider_name
from agents.goals.policies import budget_of, can_wait, is_time_over, spent_by
from agents.goals.records import feedback_of
from agents.goals.state import (
    OUT_OF_BUDGET,
    PlanningOutcome,
    degraded_reason,
    outcome_of_ending,
    spent_dimension,
)
from agents.goals.submission import GIVEN, MESSAGE_LEASE, QUEUE, RUN_TASK
from diagnostics import clock
from diagnostics.redaction.redactor import redact
from diagnostics.store.outbox import enqueue
from failsoft.actions import ParseResult
from failsoft.events import CallErrorType
from failsoft.json_values import clean_text
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.breaker import JITTER_SHARE, SHORTEST_SECONDS
from failsoft.retry.engine import Exhausted, Interrupted, Succeeded, Unanswered
from failsoft.retry.stubs import stub_plan, stub_proposal
from plans.runs import working_store

logger = structlog.get_logger(__name__)

_random = secrets.SystemRandom()

QUESTION_BYTES = 4 * 1024


def plan(walk: Walk) -> None:
    """Get this cycle's plan and update the goal's state."""
    if walk.goal.plan_source == GIVEN:
        _use_submitted_plan(walk)
        return
    walk.ending = generate_plan_with_retry(walk.claim, request_of(walk.goal))
    match walk.ending:
        case Succeeded(value):
            _decide(walk, value)
        case Exhausted(attempts) if _may_stub(walk):
            _use_stub(walk, attempts)
        case Exhausted():
            _degrade(walk, walk.ending)
        case Interrupted() if outcome_of_ending(walk.ending) is PlanningOutcome.CANCELLED:
            walk.cancel()
        case Unanswered(_, kind, wait) if wait is not None and put_off(walk, wait, kind):
            walk.is_suspended = True
        case _:
            _stop(walk, degraded_reason(walk.ending, ""))


def _stop(walk: Walk, reason: str) -> None:
    is_spent = reason == OUT_OF_BUDGET
    spent = spent_dimension(budget_of(walk.goal), spent_by(walk.goal))
    walk.state = walk.state.stopped(reason, spent if is_spent else None)


def put_off(
    walk: Walk, wait_seconds: float, reason: CallErrorType = CallErrorType.CIRCUIT_OPEN
) -> bool:
    """Requeue the goal until a breaker or the provider may admit a call; False if time runs out.

    The delay is up to a quarter longer, so that goals do not all return at once.
    """
    spread = 1 + JITTER_SHARE * _random.random()
    if not can_wait(walk.goal, wait_seconds):
        return False
    pause = timedelta(seconds=max(wait_seconds, SHORTEST_SECONDS) * spread)
    evaluation = {"reason": reason, "retry_at": (clock.now() + pause).isoformat()}
    with transaction.atomic():
        walk.claim.put_off(pause + MESSAGE_LEASE, execution_eval=evaluation)
        arguments = {"goal_id": str(walk.goal.pk)}
        enqueue(RUN_TASK, arguments, QUEUE, walk.goal.project_id, delay=pause)
    return True


def _use_submitted_plan(walk: Walk) -> None:
    goal = walk.goal
    if walk.claim.is_cancelled():
        walk.cancel()
        return
    if is_time_over(goal):
        _stop(walk, OUT_OF_BUDGET)
        return
    submitted = working_store.get(goal, "plan")
    _decide(walk, fill_plan(submitted, goal.cycle, feedback_of(goal)))


def _degrade(walk: Walk, ending: Exhausted) -> None:
    logger.warning(
        "plan_generation_failed",
        correlation_id=walk.goal.correlation_id,
        cycle=walk.goal.cycle,
        attempts=ending.attempts,
        last_error=ending.last_error.error_type.value,
    )
    names = provider_name(walk.goal), model_name(walk.goal)
    walk.state = walk.state.degraded(walk.schema, ending.attempts, *names)
    _keep_failed_calls(walk)


def _keep_failed_calls(walk: Walk) -> None:
    """Store why none of the last answer's calls could be applied."""
    if walk.schema is not PlannerSchema.ACTIONS:
        return
    name = f"{CALLS}:{walk.goal.cycle}"
    stored = working_store.get(walk.goal, name)
    with transaction.atomic():
        walk.claim.renew()
        apply_actions(walk.goal, ParseResult.from_json(stored))


def _use_stub(walk: Walk, attempts: int) -> None:
    """Use a stub in place of a plan, and log a warning."""
    record_attempts(walk, attempts, stubbed=True)
    walk.claim.renew(plan_source=STUB)
    walk.goal.plan_source = STUB
    logger.warning(
        "stub_fallback",
        correlation_id=walk.goal.correlation_id,
        cycle=walk.goal.cycle,
        attempts=attempts,
    )
    if walk.schema is not PlannerSchema.PLAN:
        _decide(walk, stub_proposal())
        return
    _decide(walk, stub_plan(request_of(walk.goal).goal, walk.goal.tools))


def _may_stub(walk: Walk) -> bool:
    """Whether a stub may replace the plan; never for actions, which it would claim were applied."""
    is_enabled = walk.goal.retry.get("use_stub_fallback", False)
    return bool(is_enabled) and walk.schema is not PlannerSchema.ACTIONS


def _decide(walk: Walk, value: dict[str, Any]) -> None:
    walk.decision = value
    walk.state = walk.state.planned()
    if value.get("kind") == "ask_user":
        question = redact(clean_text(value["question"]), QUESTION_BYTES)
        walk.state = walk.state.asking(question)
        since = clock.now().isoformat()
        walk.move(execution_eval={"waiting_for": value.get("need", "input"), "since": since})

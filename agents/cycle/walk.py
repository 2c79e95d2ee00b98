"""The state of one walk through the graph, and the terminal event."""

from dataclasses import dataclass, field
from typing import Any

from agents.goals.claims import GoalClaim
from agents.goals.events import CHECK_NODE, record_check_failed, record_degraded, schema_of
from agents.goals.models import ActionBatch, Attempt, Goal
from agents.goals.state import (
    PlanningOutcome,
    Status,
    TaskState,
    degraded_reason,
    outcome_of_ending,
    outcome_of_good_attempts,
    parse_failure_reason,
    spent_budget,
)
from diagnostics import clock
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.engine import Ending, Succeeded
from plans.models.check import CompletionCheck


@dataclass(slots=True)
class Walk:
    """The state that nodes share; they change it and the row, fenced by the claim."""

    claim: GoalClaim
    goal: Goal
    schema: PlannerSchema
    state: TaskState
    ending: Ending | None = None
    decision: dict[str, Any] = field(default_factory=dict)
    batch: ActionBatch | None = None
    # The completion check of this cycle, if one was made.
    checked: CompletionCheck | None = None
    is_suspended: bool = False

    @classmethod
    def of(cls, claim: GoalClaim) -> "Walk":
        goal = claim.goal
        state = TaskState(
            cycle=goal.cycle,
            last_validation_error=goal.last_validation_error,
            execution_eval=goal.execution_eval,
            next_user_question=goal.next_user_question,
        )
        return cls(claim, goal, schema_of(goal), state)

    def move(self, **changes: object) -> None:
        self.state = self.state.model_copy(update=changes)

    def cancel(self) -> None:
        self.move(status=Status.CANCELLED, next_user_question=None)


STUB = "stub"


def record_end(walk: Walk) -> None:
    """Store the terminal event if planning or the check failed."""
    if walk.state.status is not Status.FAILED:
        return
    if walk.checked is not None:
        record_check_failed(walk.goal, walk.checked, walk.state.execution_eval or {})
    if walk.ending is not None and not isinstance(walk.ending, Succeeded):
        if walk.goal.plan_source == STUB:
            return
        record_attempts(walk, walk.ending.attempts, stubbed=False)


def record_attempts(walk: Walk, attempts: int, *, stubbed: bool) -> None:
    """Store that the attempts of this cycle brought no valid answer."""
    assert walk.ending is not None  # noqa: S101 - it has just ended
    rows = walk.goal.attempts.filter(cycle=walk.goal.cycle).exclude(node=CHECK_NODE)
    last = rows.order_by("-attempt").first()
    reason = degraded_reason(walk.ending, parse_failure_reason(walk.schema))
    # At an open breaker a goal ends when its time is over, not with its last attempt.
    attempted = reason != PlanningOutcome.CIRCUIT_OPEN and last and last.occurred_at
    record_degraded(walk.goal, reason, attempts, attempted or clock.now(), stubbed=stubbed)


def outcome_of(walk: Walk) -> PlanningOutcome | None:
    """Return the planning outcome of the whole goal; None if nothing was planned."""
    if walk.state.status is Status.CANCELLED:
        return PlanningOutcome.CANCELLED
    if spent_budget(walk.state):
        return PlanningOutcome.BUDGET_EXHAUSTED
    stubbed = walk.goal.plan_source == STUB
    if walk.ending is not None and not isinstance(walk.ending, Succeeded):
        return PlanningOutcome.STUBBED if stubbed else outcome_of_ending(walk.ending)
    good = walk.goal.attempts.filter(state=Attempt.State.VALID)
    numbers = list(good.exclude(node=CHECK_NODE).values_list("attempt", flat=True))
    if not numbers:
        return PlanningOutcome.STUBBED if stubbed else None
    return outcome_of_good_attempts(numbers, stubbed=stubbed)

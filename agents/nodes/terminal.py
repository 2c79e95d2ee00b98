"""The terminal event of a goal, when planning or its completion check is what failed."""

from agents.check_events import CHECK_NODE, record_check_failed
from agents.core.attempts import Succeeded
from agents.core.outcomes import (
    Outcome,
    degraded_reason,
    outcome_of_ending,
    outcome_of_good_ladders,
)
from agents.core.task_state import TIME, Status, parse_failure_reason, spent_budget
from agents.models import Attempt
from agents.nodes.walk import Walk
from agents.recording import record_degraded
from diagnostics import clock

STUB = "stub"


def record_end(walk: Walk) -> None:
    """Store the terminal event when it is planning, or the check, that failed."""
    if walk.state.status is not Status.FAILED:
        return
    if walk.checked is not None:
        record_check_failed(walk.goal, walk.checked, walk.state.execution_eval or {})
    if walk.ending is not None and not isinstance(walk.ending, Succeeded):
        if walk.goal.plan_source == STUB:
            return
        record_ladder(walk, walk.ending.attempts, stubbed=False)


def record_ladder(walk: Walk, attempts: int, *, stubbed: bool) -> None:
    """Store that the ladder of this cycle found no answer."""
    assert walk.ending is not None  # noqa: S101 - it has just ended
    rows = walk.goal.attempts.filter(cycle=walk.goal.cycle).exclude(node=CHECK_NODE)
    last = rows.order_by("-attempt").first()
    reason = degraded_reason(walk.ending, parse_failure_reason(walk.schema))
    # Before a breaker a goal ends when its time is over, not with its last attempt.
    attempted = reason != Outcome.CIRCUIT_OPEN and last and last.occurred_at
    record_degraded(walk.goal, reason, attempts, attempted or clock.now(), stubbed=stubbed)


def outcome_of(walk: Walk) -> Outcome | None:
    """How planning went over the whole goal; None when nothing was planned."""
    if walk.state.status is Status.CANCELLED:
        return Outcome.CANCELLED
    if spent_budget(walk.state) == TIME:
        return Outcome.BUDGET_EXHAUSTED
    stubbed = walk.goal.plan_source == STUB
    if walk.ending is not None and not isinstance(walk.ending, Succeeded):
        return Outcome.STUBBED if stubbed else outcome_of_ending(walk.ending)
    good = walk.goal.attempts.filter(state=Attempt.State.VALID)
    numbers = list(good.exclude(node=CHECK_NODE).values_list("attempt", flat=True))
    if not numbers:
        return Outcome.STUBBED if stubbed else None
    return outcome_of_good_ladders(numbers, stubbed=stubbed)

"""Messages to the user: fixed sentences, made without a model call.

They have a reference, no question, no blame and no word about formats. Help is separate.
"""

from dataclasses import dataclass

from agents.goals.state import TIME, PlanningOutcome, Status, TaskState, spent_budget
from failsoft.actions.results import ACTIONS_FAILED, ALL_FAILED, NO_ACTIONS

PATTERNS_PATH = "/help/patterns/"

PLANNING_FAILED = "An internal planning error stopped this task."
STUBBED = "An internal planning error: a stub plan ran instead of a real one."
BUDGET_SPENT = "This task failed: its budget was used up before it was finished."
OUT_OF_TIME = "This task failed: its time ran out before it was finished."
UNFINISHED = "This task failed: it was not finished within the allowed cycles."
CHECKER_FAILED = "This task failed: the check of its completion could not be made."
UNDECIDED = "This task failed: its check could not decide whether it is complete."
STALLED = "This task failed: its last checks all found the same."
EXHAUSTED = "This task ended after its allowed cycles; its check did not find it complete."
POISONED = "An internal error stopped this task."
RECORDED = "Diagnostics were recorded for the administrator."
CANCELLED = "This task was cancelled."
COMPLETED = "This task is completed."
HELP = (
    "Shorter goals with one outcome are planned more reliably.",
    f"Examples of goals that work well are listed at {PATTERNS_PATH}.",
)

_OUT_OF_CYCLES = "max_iterations_reached"
_ENDINGS = {
    "poison": POISONED,
    "checker_failed": CHECKER_FAILED,
    "undecidable_limit_exceeded": UNDECIDED,
    "stalled": STALLED,
}


@dataclass(frozen=True, slots=True)
class UserMessage:
    """The text for the user, and the help shown beside it."""

    text: str
    help: tuple[str, ...] = ()


def respond(
    state: TaskState, outcome: PlanningOutcome | None, reference: str, answer: str | None = None
) -> UserMessage:
    """Return the message for a state; `answer` is the planner's, shown only on completion.

    A failed goal's text never depends on `next_user_question`.
    """
    match state.status:
        case Status.FAILED:
            text = f"{_failure_text(state, outcome)} {RECORDED} Reference: {reference}"
            return UserMessage(text, HELP)
        case Status.CANCELLED:
            return UserMessage(f"{CANCELLED} Reference: {reference}")
        case Status.COMPLETED if outcome is PlanningOutcome.STUBBED:
            return UserMessage(f"{STUBBED} {RECORDED} Reference: {reference}", HELP)
        case Status.COMPLETED if (state.execution_eval or {}).get("reason") == _OUT_OF_CYCLES:
            return UserMessage(f"{EXHAUSTED} Reference: {reference}")
        case Status.COMPLETED:
            return UserMessage(answer or COMPLETED)
        case Status.WAITING_USER:
            return UserMessage(state.next_user_question or "")
        case _:
            return UserMessage("")


def _failure_text(state: TaskState, outcome: PlanningOutcome | None) -> str:
    if outcome is PlanningOutcome.BUDGET_EXHAUSTED:
        return OUT_OF_TIME if spent_budget(state) == TIME else BUDGET_SPENT
    evaluation = state.execution_eval or {}
    if evaluation.get("reason") in _ENDINGS:
        return _ENDINGS[evaluation["reason"]]
    if evaluation.get("reason") in (ACTIONS_FAILED, NO_ACTIONS):
        return ALL_FAILED
    return PLANNING_FAILED if evaluation.get("degraded") else UNFINISHED

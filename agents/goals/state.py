"""A goal's state in each cycle: budget, outcome, results of earlier cycles, message to the user.

Messages are fixed sentences, made without a model call. They have a reference, no question, no
blame and no word about formats. Help is separate.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from failsoft.actions.results import ACTIONS_FAILED, ALL_FAILED, NO_ACTIONS
from failsoft.events import CallErrorType
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.engine import Ending, Exhausted, HaltReason, Interrupted, Unanswered
from failsoft.retry.prompts import one_line

# In `execution_eval` of a goal that a budget ended: the reason, and as `spent` which budget.
OUT_OF_BUDGET = "budget_exhausted"
TIME = "seconds"


class Status(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING_USER = "waiting_user"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        return self in (Status.COMPLETED, Status.FAILED, Status.CANCELLED)


class GoalMode(StrEnum):
    PLAN = "plan"
    NEXT_STEP = "next_step"
    ACTIONS = "actions"


class AttemptState(StrEnum):
    CALLING = "calling"
    VALID = "valid"
    INVALID = "invalid"
    # No answer to judge: timeout, transport, rate limit.
    CALL_FAILED = "call_failed"


class Phase(StrEnum):
    """The phase of the plan-do-check-act cycle."""

    PLAN = "plan"
    DO = "do"
    CHECK = "check"
    ACT = "act"


NODES = {
    PlannerSchema.NEXT_STEP: "next_step",
    PlannerSchema.PLAN: "plan",
    PlannerSchema.ACTIONS: "actions",
}
# A mode has the name of its node.
SCHEMA_OF_NODE = {node: schema for schema, node in NODES.items()}


class TaskState(BaseModel):
    """The fields of the state contract, under their documented names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: Status = Status.RUNNING
    pdca_phase: Phase = Phase.PLAN
    cycle: int = Field(default=1, ge=1)
    last_validation_error: dict[str, Any] | None = None
    execution_eval: dict[str, Any] | None = None
    next_user_question: str | None = None

    def planned(self) -> "TaskState":
        """Return the state after a valid answer: an earlier failure is cleared."""
        return self.model_copy(update={"last_validation_error": None, "pdca_phase": Phase.PLAN})

    def degraded(
        self, schema: PlannerSchema, attempts: int, provider: str | None, model: str | None
    ) -> "TaskState":
        """Return the state after only invalid answers: failed, with no question to the user."""
        reason = parse_failure_reason(schema)
        return self._failed(
            {"degraded": True, "reason": reason},
            {
                "reason": reason,
                "attempts": attempts,
                "schema": schema.value,
                "provider": provider or None,
                "model": model or None,
            },
        )

    def stopped(self, reason: str, spent: str | None = None) -> "TaskState":
        """Return the state when planning got no answer, or the budget `spent` is used up."""
        budget = {"spent": spent} if spent else {}
        return self._failed({"degraded": True, "reason": reason, **budget}, None)

    def out_of_budget(self, evaluation: dict[str, Any], spent: str = TIME) -> "TaskState":
        """Return the state when a budget is used up; `evaluation` says how far the goal came."""
        return self.unfinished({**evaluation, "reason": OUT_OF_BUDGET, "spent": spent})

    def unfinished(self, evaluation: dict[str, Any]) -> "TaskState":
        """Return the state when cycles ran out; `evaluation` says what the last run did."""
        return self._failed(evaluation, None).model_copy(update={"pdca_phase": Phase.ACT})

    def asking(self, question: str) -> "TaskState":
        """Return the state that waits for the user's answer."""
        return self.planned().model_copy(
            update={"status": Status.WAITING_USER, "next_user_question": question}
        )

    def _failed(self, evaluation: dict[str, Any], error: dict[str, Any] | None) -> "TaskState":
        return self.model_copy(
            update={
                "status": Status.FAILED,
                "pdca_phase": Phase.PLAN,
                "last_validation_error": error,
                "execution_eval": evaluation,
                "next_user_question": None,
            }
        )


def spent_budget(state: TaskState) -> str | None:
    evaluation = state.execution_eval or {}
    spent = evaluation.get("spent")
    return spent if evaluation.get("reason") == OUT_OF_BUDGET else None


def parse_failure_reason(schema: PlannerSchema) -> str:
    """Return the documented reason, such as `next_step_parse_failed`."""
    return f"{NODES[schema]}_parse_failed"


class GoalBudget(BaseModel):
    """Hard ceilings of one goal; seconds are wall time since a worker took it up.

    Waiting for the user's answer and for a worker is not counted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    calls: Annotated[int, Field(ge=1, le=100)] = 10
    tokens: Annotated[int, Field(ge=1, le=10_000_000)] = 20_000
    seconds: Annotated[int, Field(ge=1, le=86_400)] = 300


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used so far; tokens that were not reported count as none."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0


def spent_dimension(budget: GoalBudget, spent: Spent) -> str | None:
    ceilings = GoalBudget.model_fields
    return next((n for n in ceilings if getattr(spent, n) >= getattr(budget, n)), None)


class PlanningOutcome(StrEnum):
    """The eight ends of planning."""

    OK_FIRST = "ok_first"
    REPAIRED = "repaired"
    DEGRADED = "degraded"
    STUBBED = "stubbed"
    CIRCUIT_OPEN = "circuit_open"
    PROVIDER_FAILED = "provider_failed"
    BUDGET_EXHAUSTED = "budget_exhausted"
    CANCELLED = "cancelled"


def outcome_of_good_attempts(attempts_used: Collection[int], *, stubbed: bool) -> PlanningOutcome:
    """Return the outcome if every cycle got a valid answer: repaired if one needed a retry."""
    if stubbed:
        return PlanningOutcome.STUBBED
    return (
        PlanningOutcome.REPAIRED
        if any(number > 1 for number in attempts_used)
        else PlanningOutcome.OK_FIRST
    )


def outcome_of_ending(ending: Ending) -> PlanningOutcome:
    match ending:
        case Exhausted():
            return PlanningOutcome.DEGRADED
        case Unanswered(error_type=CallErrorType.CIRCUIT_OPEN):
            return PlanningOutcome.CIRCUIT_OPEN
        case Interrupted(reason=HaltReason.CANCELLED):
            return PlanningOutcome.CANCELLED
        case Interrupted() | Unanswered(error_type=CallErrorType.BUDGET_EXHAUSTED):
            return PlanningOutcome.BUDGET_EXHAUSTED
        case Unanswered():
            return PlanningOutcome.PROVIDER_FAILED
        case _:
            return PlanningOutcome.OK_FIRST if ending.attempts == 1 else PlanningOutcome.REPAIRED


def degraded_reason(ending: Ending, parse_reason: str) -> str:
    """Return the `reason` of the degraded event (docs/http-api.md)."""
    match ending:
        case Unanswered(error_type=CallErrorType.TIMEOUT):
            return "timeout"
        case Exhausted():
            return parse_reason
        case _:
            return outcome_of_ending(ending).value


MAX_OUTPUT_CHARACTERS = 300
MAX_ANSWER_CHARACTERS = 8_000


def describe_results(cycle: int, results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each step of a run: its state and its output."""
    return [
        f"cycle {cycle}, {row.get('step_id')} ({row.get('tool')}): {_describe_row(row)}"
        for row in results
        if row.get("step_id") != "__meta__"
    ]


def describe_check(cycle: int, decision: str, reason: str | None, reasons: Iterable[str]) -> str:
    """Return a line: what the completion check of a cycle decided, and why."""
    joined = "; ".join(one_line(text, MAX_OUTPUT_CHARACTERS) for text in reasons)
    explanation = joined or one_line(reason or "no reason given", MAX_OUTPUT_CHARACTERS)
    return f"cycle {cycle}, completion check: {decision} - {explanation}"


def describe_answer(question: str, answer: str) -> str:
    """Return a line: the question to the user and the answer."""
    answered = one_line(answer, MAX_ANSWER_CHARACTERS)
    return f"asked the user: {one_line(question, 200)} - answered: {answered}"


def _describe_row(row: Mapping[str, Any]) -> str:
    if row.get("ok"):
        output = json.dumps(row.get("output"), ensure_ascii=False, default=str)
        return f"ok, {one_line(output, MAX_OUTPUT_CHARACTERS)}"
    state = "skipped" if row.get("skipped") else "failed"
    reason = str(row.get("error") or row.get("reason") or "")
    return f"{state}, {one_line(reason, MAX_OUTPUT_CHARACTERS)}"


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

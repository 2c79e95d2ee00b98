"""The state contract of a goal (s0): what is stored at each turn of the cycle."""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agents.core.interpreting import Schema

# What `execution_eval` says of a goal that a budget has ended: the reason, and as `spent` which.
OUT_OF_BUDGET = "budget_exhausted"
TIME = "seconds"


class Status(StrEnum):
    """Where a goal is (design: goal status)."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING_USER = "waiting_user"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing more happens to the goal."""
        return self in (Status.COMPLETED, Status.FAILED, Status.CANCELLED)


class Phase(StrEnum):
    """The phase of the plan-do-check-act cycle."""

    PLAN = "plan"
    DO = "do"
    CHECK = "check"
    ACT = "act"


NODES = {
    Schema.NEXT_STEP: "next_step",
    Schema.PLAN: "plan",
    Schema.ACTIONS: "actions",
}


class TaskState(BaseModel):
    """The fields of s0's state contract, under their documented names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: Status = Status.RUNNING
    pdca_phase: Phase = Phase.PLAN
    cycle: int = Field(default=1, ge=1)
    last_validation_error: dict[str, Any] | None = None
    execution_eval: dict[str, Any] | None = None
    next_user_question: str | None = None

    def planned(self) -> "TaskState":
        """A valid answer was found: nothing of an earlier failure is left (S0-59)."""
        return self.model_copy(update={"last_validation_error": None, "pdca_phase": Phase.PLAN})

    def degraded(
        self, schema: Schema, attempts: int, provider: str | None, model: str | None
    ) -> "TaskState":
        """Every answer was invalid: failed inside, with no question to anybody (S0-13 to S0-21)."""
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
        """Planning ended without a parse failure: no answer, or the budget `spent` is used up."""
        budget = {"spent": spent} if spent else {}
        return self._failed({"degraded": True, "reason": reason, **budget}, None)

    def out_of_time(self, evaluation: dict[str, Any]) -> "TaskState":
        """The time budget ended the work; `evaluation` says how far it came."""
        return self.unfinished({**evaluation, "reason": OUT_OF_BUDGET, "spent": TIME})

    def unfinished(self, evaluation: dict[str, Any]) -> "TaskState":
        """The cycles are used up; `evaluation` says what the last run did."""
        return self._failed(evaluation, None).model_copy(update={"pdca_phase": Phase.ACT})

    def asking(self, question: str) -> "TaskState":
        """Only the user can help (S0-22)."""
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
    """Return which budget has ended a goal, or None."""
    evaluation = state.execution_eval or {}
    spent = evaluation.get("spent")
    return spent if evaluation.get("reason") == OUT_OF_BUDGET else None


def parse_failure_reason(schema: Schema) -> str:
    """The documented reason, `next_step_parse_failed` verbatim."""
    return f"{NODES[schema]}_parse_failed"

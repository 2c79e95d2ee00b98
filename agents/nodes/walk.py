"""One claim at work: the goal's state, and what the nodes hand to each other."""

from dataclasses import dataclass, field
from typing import Any

from agents.claims import Claim
from agents.core.attempts import Ending
from agents.core.interpreting import Schema
from agents.core.task_state import Status, TaskState
from agents.models import ActionBatch, Goal
from agents.recording import schema_of
from plans.models import CompletionCheck


@dataclass(slots=True)
class Walk:
    """Everything a walk knows; nodes change it and the row, fenced by the claim."""

    claim: Claim
    goal: Goal
    schema: Schema
    state: TaskState
    ending: Ending | None = None
    decision: dict[str, Any] = field(default_factory=dict)
    batch: ActionBatch | None = None
    # What the completion check of this cycle came to, where one was asked for.
    checked: CompletionCheck | None = None
    is_suspended: bool = False

    @classmethod
    def of(cls, claim: Claim) -> "Walk":
        """Begin where the goal's row stands."""
        goal = claim.goal
        state = TaskState(
            cycle=goal.cycle,
            last_validation_error=goal.last_validation_error,
            execution_eval=goal.execution_eval,
            next_user_question=goal.next_user_question,
        )
        return cls(claim, goal, schema_of(goal), state)

    def cancel(self) -> None:
        """End because somebody asked for it."""
        self.state = self.state.model_copy(
            update={"status": Status.CANCELLED, "next_user_question": None}
        )

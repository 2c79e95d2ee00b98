"""Tool calls of stored steps: the idempotency key, and whether a call may be repeated."""

from collections.abc import Callable
from uuid import UUID

from failsoft.plans.contract import StepResult
from failsoft.plans.execution import CallContext, Executed
from failsoft.plans.resolution import PlannedStep
from plans.models.run import Run
from plans.runs.records import POISON
from plans.tools.registry import find_tool

UNKNOWN_OUTCOME = "unknown_outcome"
_UNKNOWN = "The worker stopped during the call; its effect is unknown."


def idempotency_key(run_id: UUID | str, step_id: str, group: int) -> str:
    """Return the idempotency key of a call, the same for every try of it."""
    return f"{run_id}:{step_id}:{group}"


def make_context(
    run: Run, step: PlannedStep, attempt: int, group: int, is_cancelled: Callable[[], bool]
) -> CallContext:
    return CallContext(
        idempotency_key=idempotency_key(run.id_text, str(step.index + 1), group),
        run_id=run.id_text,
        step_id=step.step_id,
        project_id=run.project_id,
        attempt=attempt,
        is_cancelled=is_cancelled,
    )


def may_repeat(step: PlannedStep) -> bool:
    tool = find_tool(step.call)
    return tool is None or tool.idempotent or not tool.side_effects


def has_side_effects(step: PlannedStep) -> bool:
    """Whether the call has side effects, so that its start must be stored first."""
    tool = find_tool(step.call)
    return tool is not None and tool.side_effects


def interruption_fault(step: PlannedStep, starts: int) -> Executed:
    """Return the result of a step during which workers died too often."""
    error = f"The worker stopped during this step; {starts} starts."
    return fail(step, POISON, error)


def admit_unknown(step: PlannedStep) -> Executed:
    """Return the result of a call that may have happened and must not be repeated."""
    return fail(step, UNKNOWN_OUTCOME, _UNKNOWN)


def fail(step: PlannedStep, reason: str, error: str) -> Executed:
    """Return a failure that the step's tool did not cause."""
    result = StepResult(step_id=step.step_id, tool=step.tool, ok=False, reason=reason, error=error)
    return Executed(result)

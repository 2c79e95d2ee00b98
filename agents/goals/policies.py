"""How a goal is planned and within what bounds, by its row and its model's."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from agents.goals.models import Goal
from agents.goals.state import GoalBudget, PlanningOutcome, Spent
from agents.llm.models import LanguageModel, Provider
from diagnostics import clock
from failsoft.actions.entries import TOOLSETS
from failsoft.retry.answer_schemas import JsonSchema, answer_schema, narrow_schema
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.breaker import JITTER_SHARE, SHORTEST_SECONDS
from failsoft.retry.policy import OutputMode, RetryConfig, RetryPolicy
from failsoft.retry.prompts import Request, ToolOffer
from plans.tools.definition import PYTHON
from plans.tools.registry import offered_tools

# Tokens: below, a small model would rather begin another step than end.
SHORT_ANSWER = 512
# Also stored in a goal's budget: seconds spent waiting, the time of an answer
# that no worker has claimed yet, and the run whose waits are included in the seconds.
WAITED, ANSWERED_AT, COUNTED_RUN = "waited_seconds", "answered_at", "counted_run"


def policy_of(goal: Goal, request: Request) -> RetryPolicy:
    """Return the attempt policy set by the goal and its model."""
    model = goal.planner_model
    first, last = OutputMode(model.output_mode), OutputMode(model.last_output_mode)
    if request.schema is PlannerSchema.ACTIONS:
        first = _mode_of_calls(model)
    if last is OutputMode.TEXT or last not in model.supported_output_modes:
        last = first
    return RetryPolicy(
        retry=RetryConfig.model_validate(goal.retry),
        output_mode=first,
        last_output_mode=last,
        max_output_tokens=model.max_output_tokens,
        max_output_tokens_ceiling=4 * model.max_output_tokens,
        temperature=model.temperature,
        timeout_seconds=model.attempt_timeout_seconds,
        optional_constraints=request.optional_constraints,
    )


def _mode_of_calls(model: LanguageModel) -> OutputMode:
    """Return native tool calls, unless the model is known to lack them."""
    modes = model.supported_output_modes
    if model.output_mode == OutputMode.SCHEMA:
        return OutputMode.SCHEMA
    if not modes or OutputMode.TOOLS in modes:
        return OutputMode.TOOLS
    return OutputMode.SCHEMA if OutputMode.SCHEMA in modes else OutputMode.TEXT


def schema_for(
    model: LanguageModel, schema: PlannerSchema, tools: Sequence[ToolOffer]
) -> JsonSchema:
    """Return the schema of an answer: a narrow one for short answers of a server of one's own.

    OpenAI and Anthropic refuse what narrows it.
    """
    is_other = model.provider.adapter == Provider.Adapter.OPENAI and model.provider.base_url
    is_narrow = is_other and model.max_output_tokens < SHORT_ANSWER
    return (narrow_schema if is_narrow else answer_schema)(schema, tools)


def offers_for(goal: Goal) -> tuple[ToolOffer, ...]:
    """Return the tools in the planner's prompt: those the goal names, or all that are offered."""
    if goal.toolset is not None:
        return TOOLSETS[goal.toolset].offers()
    return tuple(
        ToolOffer(tool.name, tool.description, tool.schema(), is_foreign=tool.source != PYTHON)
        for tool in offered_tools(goal.project_id)
        if goal.tools is None or tool.name in goal.tools
    )


def without_wait(goal: Goal, taken_at: datetime) -> dict[str, Any]:
    """Return the budget without the time spent waiting for a worker until `taken_at`.

    That is: until the run was claimed, until the goal was claimed after it, and until the
    goal was claimed after an answer. Each is deducted once.
    """
    budget, run = dict(goal.budget), goal.current_run
    waited = timedelta(0)
    if answered := budget.pop(ANSWERED_AT, None):
        waited += taken_at - datetime.fromisoformat(answered)
    if run is not None and run.ended_at and budget.get(COUNTED_RUN) != str(run.pk):
        waited += taken_at - run.ended_at
        waited += (run.started_at or run.ended_at) - run.created_at
        budget[COUNTED_RUN] = str(run.pk)
    if waited:
        budget[WAITED] = budget.get(WAITED, 0.0) + waited.total_seconds()
    return budget


def is_time_over(goal: Goal) -> bool:
    deadline = deadline_of(goal)
    return deadline is not None and clock.now() >= deadline


def spent_by(goal: Goal) -> Spent:
    """Return what the goal has used so far, over all cycles; waiting is not counted."""
    rows = list(goal.attempts.values_list("input_tokens", "output_tokens"))
    tokens = sum((input_tokens or 0) + (output_tokens or 0) for input_tokens, output_tokens in rows)
    waited = float(goal.budget.get(WAITED, 0))
    elapsed = (clock.now() - goal.started_at).total_seconds() if goal.started_at else 0.0
    return Spent(len(rows), tokens, elapsed - waited)


def budget_of(goal: Goal) -> GoalBudget:
    return GoalBudget.model_validate(
        {key: goal.budget[key] for key in GoalBudget.model_fields if key in goal.budget}
    )


def deadline_of(goal: Goal) -> datetime | None:
    """Return when the goal's time is over; None before it has started."""
    if goal.started_at is None:
        return None
    waited = float(goal.budget.get(WAITED, 0))
    return goal.started_at + timedelta(seconds=budget_of(goal).seconds + waited)


def can_wait(goal: Goal, seconds: float) -> bool:
    """Whether a goal's time lasts for a wait, which may be a quarter longer."""
    deadline = deadline_of(goal)
    longest = timedelta(seconds=max(seconds, SHORTEST_SECONDS) * (1 + JITTER_SHARE))
    return deadline is None or clock.now() + longest < deadline


def was_put_off(goal: Goal) -> bool:
    """Whether a breaker denied the goal's last call."""
    return (goal.execution_eval or {}).get("reason") == PlanningOutcome.CIRCUIT_OPEN

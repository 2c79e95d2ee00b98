"""The planner's input, and the placeholders of a submitted plan."""

from typing import Any

from agents.actions.applying import describe_things
from agents.fix_patterns.store import hints_for
from agents.goals.events import schema_of
from agents.goals.models import Goal
from agents.goals.policies import offers_for
from agents.goals.records import decided_checks, runs_of
from agents.goals.state import describe_check, describe_results
from failsoft.retry.prompts import Request
from plans.runs import working_store
from plans.runs.records import results_of


def request_of(goal: Goal) -> Request:
    """Build the request of the goal's current cycle; its raw text is in the working store."""
    raw = working_store.get(goal, "goal")
    required = [item["text"] for item in raw["constraints"] if not item["optional"]]
    optional = [item["text"] for item in raw["constraints"] if item["optional"]]
    schema = schema_of(goal)
    hints = hints_for(goal, schema)
    lines = []
    for run in runs_of(goal):
        lines += describe_results(run.cycle, results_of(run))
    for row in decided_checks(goal):
        lines.append(describe_check(row.cycle, row.decision or "", row.reason, row.reasons))
    answers = working_store.get_all(goal, "answers")
    return Request(
        schema=schema,
        goal=raw["text"],
        tools=offers_for(goal),
        constraints=tuple(required),
        optional_constraints=tuple(optional),
        context=(*lines, *answers.get("answers", [])),
        things=tuple(describe_things(goal)),
        hints=hints.chosen,
        withheld_patterns=hints.withheld,
    )


PLACES = ("${iteration}", "${feedback}")


def fill_plan(plan: dict[str, Any], iteration: int, feedback: str) -> dict[str, Any]:
    """Fill the number of the cycle and the last check's reasons into the arguments of steps.

    `${iteration}` and `${feedback}` are replaced in texts, once and literally: a check's
    reasons are never read as a placeholder or as a reference to a step.
    """
    values = {"iteration": str(iteration), "feedback": feedback}
    steps = [_fill_step(step, values) for step in plan["steps"]]
    return {**plan, "steps": steps}


def _fill_step(step: dict[str, Any], values: dict[str, str]) -> dict[str, Any]:
    filled = dict(step)
    if "args" in step:
        filled["args"] = _fill(step["args"], values)
    if isinstance(step["tool"], dict) and "args" in step["tool"]:
        filled["tool"] = {**step["tool"], "args": _fill(step["tool"]["args"], values)}
    return filled


def _fill(value: Any, values: dict[str, str]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, list):
        return [_fill(item, values) for item in value]
    if isinstance(value, dict):
        return {key: _fill(item, values) for key, item in value.items()}
    return _fill_text(value, values) if isinstance(value, str) else value


def _fill_text(text: str, values: dict[str, str]) -> str:
    parts = text.split("${iteration}")
    parts = [part.replace("${feedback}", values["feedback"]) for part in parts]
    filled = values["iteration"].join(parts)
    # A value at the beginning could be read as a reference; "$$" is a literal "$".
    makes_reference = text.startswith(PLACES) and filled.startswith("$")
    return f"${filled}" if makes_reference else filled

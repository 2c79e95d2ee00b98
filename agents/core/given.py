"""A plan that came with the goal: the same every cycle, but for what the last check said."""

from typing import Any

PLACES = ("${iteration}", "${feedback}")


def fill_plan(plan: dict[str, Any], iteration: int, feedback: str) -> dict[str, Any]:
    """Put the number of the cycle and the last check's reasons in the arguments of steps.

    `${iteration}` and `${feedback}` are replaced in texts, once and literally: what a check
    says is never read as a place or as a reference to a step.
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
    # What was put first could make a reference; a doubled sign stands for itself.
    is_put = text.startswith(PLACES) and filled.startswith("$")
    return f"${filled}" if is_put else filled

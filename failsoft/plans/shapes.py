"""The shape of each step by itself: id, title, dependencies, tool."""

import re
from typing import Any

from failsoft.plans.contract import MAX_DEPENDENCIES, MAX_STEPS, META_STEP_ID
from failsoft.plans.references import find_references
from failsoft.plans.violations import Violations, kind_of, quote

_PREFIX = "step_"
_PLAIN = re.compile(r"(?:step_[1-9][0-9]{0,8}|(?!step_|__)[A-Za-z_][A-Za-z0-9_]*)\Z")
_NUMBERED = re.compile(r"step_([1-9][0-9]*)\Z")


def _refuse(step_id: object) -> tuple[str, str] | None:
    if not isinstance(step_id, str):
        return "step_id_type", f"expected a non-empty string, got {kind_of(step_id)}"
    if _PLAIN.match(step_id):
        # The usual case, decided cheaply.
        return None
    if not step_id.strip():
        return "step_id_empty", "expected a non-empty string, got an empty one"
    if step_id != step_id.strip():
        return "step_id_padded", f"expected no space around the id {quote(step_id)}"
    if step_id == META_STEP_ID:
        return "step_id_reserved", f"{quote(META_STEP_ID)} is the id of the summary"
    if not step_id.isprintable() and _has_control(step_id):
        return "step_id_characters", "expected an id without control characters"
    return _refuse_number(step_id)


def _refuse_number(step_id: str) -> tuple[str, str] | None:
    rest = step_id.removeprefix(_PREFIX).lstrip("+-")
    if not step_id.startswith(_PREFIX) or not rest.isnumeric() or _NUMBERED.match(step_id):
        return None
    return (
        "step_id_number",
        f"expected step_1, step_2, ... in plain digits without leading zeros, got {quote(step_id)}",
    )


def _has_control(step_id: str) -> bool:
    return any(char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff"
               for char in step_id)  # fmt: skip


def number_of(step_id: str) -> int | None:
    """Return k of a `step_k` id, or None for a named one.

    A number no plan can reach counts as one past the largest possible.
    """
    match = _NUMBERED.match(step_id)
    if match is None:
        return None
    digits = match[1]
    return int(digits) if len(digits) <= len(str(MAX_STEPS)) else MAX_STEPS + 1


def check_sequence(index_of: dict[str, int], found: Violations) -> None:
    """Check that the `step_k` ids are step_1 to step_N without gaps, in any order.

    `index_of` maps each declared id to its place among the steps.
    """
    numbered = sorted(
        (number, index_of[step_id], step_id)
        for step_id in index_of
        if (number := number_of(step_id)) is not None
    )
    previous = 0
    for number, index, step_id in numbered:
        if number > previous + 1:
            found.add(f"/steps/{index}/step_id", *_explain_gap(previous, step_id))
        previous = number


def _explain_gap(previous: int, step_id: str) -> tuple[str, str]:
    if previous == 0:
        return ("step_sequence_start", f"expected the ids to start at step_1, got {quote(step_id)}")
    missing = f'"{_PREFIX}{previous + 1}"'
    return (
        "step_sequence_gap",
        f'expected {missing} after "{_PREFIX}{previous}", got {quote(step_id)}',
    )


def check_shapes(steps: list[Any], found: Violations) -> dict[str, int]:
    """Check each step by itself and return the place of each declared id."""
    index_of: dict[str, int] = {}
    for index, step in enumerate(steps):
        if found.full:
            break
        path = f"/steps/{index}"
        if not isinstance(step, dict):
            found.add_type(path, "step_type", "a step object", step)
            continue
        _declare(step, path, index, index_of, found)
        _check_title(step, path, found)
        check_dependency_list(step, path, found)
        check_tool(step, path, found)
    return index_of


def _declare(
    step: dict[str, Any], path: str, index: int, index_of: dict[str, int], found: Violations
) -> None:
    if "step_id" not in step:
        found.add(path, "step_id_missing", 'expected the key "step_id"')
        return
    step_id = step["step_id"]
    refusal = _refuse(step_id)
    if refusal is not None:
        found.add(f"{path}/step_id", *refusal)
        if not isinstance(step_id, str):
            return
    elif step_id in index_of:
        found.add(
            f"{path}/step_id",
            "step_id_duplicate",
            f"expected a unique id, but {quote(step_id)} is also step {index_of[step_id] + 1}",
        )
    # A malformed id is declared all the same: who depends on it is not at fault.
    index_of.setdefault(step_id, index)


def _check_title(step: dict[str, Any], path: str, found: Violations) -> None:
    title = step.get("title")
    if title is not None and not isinstance(title, str):
        found.add_type(f"{path}/title", "title_type", "a string", title)


def check_dependency_list(step: dict[str, Any], path: str, found: Violations) -> None:
    """Check that a step's dependencies, if given, are a list of strings."""
    dependencies = step.get("dependencies", [])
    at = f"{path}/dependencies"
    if not isinstance(dependencies, list):
        found.add_type(at, "dependencies_type", "an array of step ids", dependencies)
        return
    if len(dependencies) > MAX_DEPENDENCIES:
        found.add(
            at,
            "dependencies_too_many",
            f"expected at most {MAX_DEPENDENCIES} dependencies, got {len(dependencies)}",
        )
    for place, dependency in enumerate(dependencies):
        if not isinstance(dependency, str):
            found.add_type(f"{at}/{place}", "dependency_type", "a step id", dependency)


def check_tool(step: dict[str, Any], path: str, found: Violations) -> None:
    """Check a step's tool and its arguments, in either form."""
    if "tool" not in step:
        found.add(path, "tool_missing", 'expected the key "tool"')
        return
    tool = step["tool"]
    if isinstance(tool, str):
        if not tool.strip():
            found.add(
                f"{path}/tool", "tool_empty", "expected the name of a tool, got an empty string"
            )
        _check_args(step, path, found)
    elif isinstance(tool, dict):
        _check_tool_object(step, tool, path, found)
    else:
        found.add_type(f"{path}/tool", "tool_type", "a tool name or an object", tool)


def _check_tool_object(
    step: dict[str, Any], tool: dict[str, Any], path: str, found: Violations
) -> None:
    name = tool.get("name")
    if "name" not in tool:
        found.add(f"{path}/tool", "tool_name_missing", 'expected the key "name"')
    elif not isinstance(name, str):
        found.add_type(f"{path}/tool/name", "tool_name_type", "a string", name)
    elif not name.strip():
        found.add(
            f"{path}/tool/name", "tool_empty", "expected the name of a tool, got an empty string"
        )
    _check_args(tool, f"{path}/tool", found)
    if "args" in step:
        found.add(f"{path}/args", "args_mixed", "expected arguments only inside the tool object")


def _check_args(holder: dict[str, Any], path: str, found: Violations) -> None:
    args = holder.get("args", {})
    if not isinstance(args, dict):
        found.add_type(f"{path}/args", "args_type", "an object", args)


def referenced_indices(step: dict[str, Any], index: int, index_of: dict[str, int]) -> list[int]:
    """Return the places of the other steps whose outputs the arguments refer to."""
    tool = step.get("tool")
    args = tool.get("args") if isinstance(tool, dict) else step.get("args")
    places = {index_of[step_id] for step_id in find_references(args) if step_id in index_of}
    return sorted(places - {index})

"""The shape of each step by itself: id, title, dependencies, tool (S2-5..13)."""

from typing import Any

from plans.core.contract import MAX_DEPENDENCIES
from plans.core.references import find_references
from plans.core.step_ids import check_step_id
from plans.core.violations import Violations, kind_of, quote


def check_shapes(steps: list[Any], found: Violations) -> dict[str, int]:
    """Check each step by itself and return the place of each declared id."""
    index_of: dict[str, int] = {}
    for index, step in enumerate(steps):
        if found.full:
            break
        path = f"/steps/{index}"
        if not isinstance(step, dict):
            found.add(path, "step_type", f"expected a step object, got {kind_of(step)}")
            continue
        _declare(step, path, index, index_of, found)
        _check_title(step, path, found)
        check_dependency_list(step, path, found)
        check_tool(step, path, found)
    return index_of


def _declare(
    step: dict[str, Any],
    path: str,
    index: int,
    index_of: dict[str, int],
    found: Violations,
) -> None:
    if "step_id" not in step:
        found.add(path, "step_id_missing", 'expected the key "step_id"')
        return
    step_id = step["step_id"]
    if not check_step_id(step_id, f"{path}/step_id", found):
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
        found.add(f"{path}/title", "title_type", f"expected a string, got {kind_of(title)}")


def check_dependency_list(step: dict[str, Any], path: str, found: Violations) -> None:
    """Check that a step's dependencies, if given, are a list of strings (S2-9)."""
    dependencies = step.get("dependencies", [])
    at = f"{path}/dependencies"
    if not isinstance(dependencies, list):
        found.add(
            at,
            "dependencies_type",
            f"expected an array of step ids, got {kind_of(dependencies)}",
        )
        return
    if len(dependencies) > MAX_DEPENDENCIES:
        found.add(
            at,
            "dependencies_too_many",
            f"expected at most {MAX_DEPENDENCIES} dependencies, got {len(dependencies)}",
        )
    for place, dependency in enumerate(dependencies):
        if not isinstance(dependency, str):
            found.add(
                f"{at}/{place}",
                "dependency_type",
                f"expected a step id, got {kind_of(dependency)}",
            )


def check_tool(step: dict[str, Any], path: str, found: Violations) -> None:
    """Check a step's tool and its arguments, in either form (S2-11..13)."""
    if "tool" not in step:
        found.add(path, "tool_missing", 'expected the key "tool"')
        return
    tool = step["tool"]
    if isinstance(tool, str):
        if not tool.strip():
            found.add(
                f"{path}/tool",
                "tool_empty",
                "expected the name of a tool, got an empty string",
            )
        _check_args(step, path, found)
    elif isinstance(tool, dict):
        _check_tool_object(step, tool, path, found)
    else:
        found.add(
            f"{path}/tool",
            "tool_type",
            f"expected a tool name or an object, got {kind_of(tool)}",
        )


def _check_tool_object(
    step: dict[str, Any], tool: dict[str, Any], path: str, found: Violations
) -> None:
    name = tool.get("name")
    if "name" not in tool:
        found.add(f"{path}/tool", "tool_name_missing", 'expected the key "name"')
    elif not isinstance(name, str):
        found.add(
            f"{path}/tool/name",
            "tool_name_type",
            f"expected a string, got {kind_of(name)}",
        )
    elif not name.strip():
        found.add(
            f"{path}/tool/name",
            "tool_empty",
            "expected the name of a tool, got an empty string",
        )
    _check_args(tool, f"{path}/tool", found)
    if "args" in step:
        found.add(
            f"{path}/args",
            "args_mixed",
            "expected arguments inside the tool object only, not beside it",
        )


def _check_args(holder: dict[str, Any], path: str, found: Violations) -> None:
    args = holder.get("args", {})
    if not isinstance(args, dict):
        found.add(f"{path}/args", "args_type", f"expected an object, got {kind_of(args)}")


def referenced_indices(step: dict[str, Any], index: int, index_of: dict[str, int]) -> list[int]:
    """Return the places of the other steps whose outputs the arguments refer to."""
    tool = step.get("tool")
    args = tool.get("args") if isinstance(tool, dict) else step.get("args")
    places = {index_of[step_id] for step_id in find_references(args) if step_id in index_of}
    return sorted(places - {index})

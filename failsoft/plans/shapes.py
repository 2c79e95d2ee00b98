"""Validation of the shape of single steps: id, title, dependencies, tool, keys."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from failsoft.plans.contract import (
    MAX_DEPENDENCIES,
    MAX_STEPS,
    META_STEP_ID,
    PLAN_KEYS,
    STEP_KEYS,
    TOOL_KEYS,
)
from failsoft.plans.ordering import find_references
from failsoft.plans.violations import Place, Violations, kind_of, point, quote

_PREFIX = "step_"
_PLAIN = re.compile(r"(?:step_[1-9][0-9]{0,8}|(?!step_|__)[A-Za-z_][A-Za-z0-9_]*)\Z")
_NUMBERED = re.compile(r"step_([1-9][0-9]*)\Z")
_MOST_DIGITS = len(str(MAX_STEPS))
_SEPARATORS = re.compile(r"[\s_-]+")
# Other names that models write. They are compared without case, spaces, underscores and hyphens.
NEAR_NAMES: Mapping[str, frozenset[str]] = {
    "args": frozenset((
        "arg", "argument", "arguments", "input", "inputs", "kwargs", "param", "parameter",
        "parameters", "params", "actioninput", "toolargs", "toolarguments", "toolinput",
        "toolparams",
    )),
    "dependencies": frozenset((
        "after", "blockedby", "dep", "dependency", "dependson", "dependsupon", "deps", "needs",
        "predecessors", "prereqs", "prerequisite", "prerequisites", "requires", "runafter",
        "waitfor", "waitsfor",
    )),
}  # fmt: skip


def _refuse(step_id: object) -> tuple[str, str] | None:
    if not isinstance(step_id, str):
        return "step_id_type", f"expected a non-empty string, got {kind_of(step_id)}"
    if not step_id.strip():
        return "step_id_empty", "expected a non-empty string, got an empty one"
    if step_id != step_id.strip():
        return "step_id_padded", f"expected no space around the id {quote(step_id)}"
    if step_id == META_STEP_ID:
        return "step_id_reserved", f"{quote(META_STEP_ID)} is the id of the summary"
    if not step_id.isprintable() and _has_control(step_id):
        return "step_id_characters", "expected an id without control characters"
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

    A number beyond MAX_STEPS is returned as MAX_STEPS + 1.
    """
    match = _NUMBERED.match(step_id)
    if match is None:
        return None
    digits = match[1]
    return int(digits) if len(digits) <= _MOST_DIGITS else MAX_STEPS + 1


def check_sequence(index_of: dict[str, int], violations: Violations) -> None:
    """Check that the `step_k` ids are step_1 to step_N without gaps, in any order.

    `index_of` maps each declared id to its index.
    """
    numbered = [
        (number, index, step_id)
        for step_id, index in index_of.items()
        if (number := number_of(step_id))
    ]
    previous = 0
    for number, index, step_id in sorted(numbered):
        if number > previous + 1:
            violations.add(f"/steps/{index}/step_id", *_explain_gap(previous, step_id))
        previous = number


def _explain_gap(previous: int, step_id: str) -> tuple[str, str]:
    if previous == 0:
        return ("step_sequence_start", f"expected the ids to start at step_1, got {quote(step_id)}")
    missing = f'"{_PREFIX}{previous + 1}"'
    return (
        "step_sequence_gap",
        f'expected {missing} after "{_PREFIX}{previous}", got {quote(step_id)}',
    )


def check_shapes(steps: list[Any], violations: Violations) -> dict[str, int]:
    index_of: dict[str, int] = {}
    for index, step in enumerate(steps):
        if violations.full:
            break
        path = f"/steps/{index}"
        if not isinstance(step, dict):
            violations.add_type(path, "step_type", "a step object", step)
            continue
        _declare(step, path, index, index_of, violations)
        title = step.get("title")
        if title is not None and not isinstance(title, str):
            violations.add_type(f"{path}/title", "title_type", "a string", title)
        check_dependency_list(step, path, violations)
        check_tool(step, path, violations)
    return index_of


def _declare(
    step: dict[str, Any], path: str, index: int, index_of: dict[str, int], violations: Violations
) -> None:
    if "step_id" not in step:
        violations.add(path, "step_id_missing", 'expected the key "step_id"')
        return
    step_id = step["step_id"]
    is_plain = isinstance(step_id, str) and _PLAIN.match(step_id)
    if not is_plain and (refusal := _refuse(step_id)):
        violations.add(f"{path}/step_id", *refusal)
        # A malformed id is declared, so that its dependents are not reported too.
        if isinstance(step_id, str):
            index_of.setdefault(step_id, index)
    elif (first := index_of.setdefault(step_id, index)) != index:
        violations.add(
            f"{path}/step_id",
            "step_id_duplicate",
            f"expected a unique id, but {quote(step_id)} is also step {first + 1}",
        )


def check_dependency_list(step: dict[str, Any], path: str, violations: Violations) -> None:
    dependencies = step.get("dependencies", [])
    if not isinstance(dependencies, list):
        violations.add_type(
            f"{path}/dependencies", "dependencies_type", "an array of step ids", dependencies
        )
        return
    if len(dependencies) > MAX_DEPENDENCIES:
        violations.add(
            f"{path}/dependencies",
            "dependencies_too_many",
            f"expected at most {MAX_DEPENDENCIES} dependencies, got {len(dependencies)}",
        )
    for index, dependency in enumerate(dependencies):
        if not isinstance(dependency, str):
            violations.add_type(
                f"{path}/dependencies/{index}", "dependency_type", "a step id", dependency
            )


def check_tool(step: dict[str, Any], path: str, violations: Violations) -> None:
    if "tool" not in step:
        violations.add(path, "tool_missing", 'expected the key "tool"')
        return
    tool = step["tool"]
    is_object = isinstance(tool, dict)
    if not is_object and not isinstance(tool, str):
        violations.add_type(f"{path}/tool", "tool_type", "a tool name or an object", tool)
        return
    name = tool.get("name") if is_object else tool
    if is_object and "name" not in tool:
        violations.add(f"{path}/tool", "tool_name_missing", 'expected the key "name"')
    elif not isinstance(name, str):
        violations.add_type(f"{path}/tool/name", "tool_name_type", "a string", name)
    elif not name.strip():
        violations.add(
            f"{path}/tool/name" if is_object else f"{path}/tool",
            "tool_empty",
            "expected the name of a tool, got an empty string",
        )
    args = (tool if is_object else step).get("args", {})
    if not isinstance(args, dict):
        args_path = f"{path}/tool/args" if is_object else f"{path}/args"
        violations.add_type(args_path, "args_type", "an object", args)
    if is_object and "args" in step:
        violations.add(
            f"{path}/args", "args_mixed", "expected arguments only inside the tool object"
        )


def references_of(step: dict[str, Any]) -> list[tuple[Place, str]]:
    """Return where a step refers to the outputs of steps, and to which."""
    tool = step.get("tool")
    if isinstance(tool, dict):
        return find_references(tool.get("args"), ("tool", "args"))
    return find_references(step.get("args"), ("args",))


def known_indices(
    references: Iterable[tuple[Place, str]], index: int, index_of: Mapping[str, int]
) -> list[int]:
    """Return the indices of the other declared steps among those that a step refers to."""
    indices = {index_of[step_id] for _, step_id in references if step_id in index_of}
    return sorted(indices - {index})


def check_keys(payload: object, violations: Violations) -> None:
    """Check that a payload, its steps and their tools have no keys but those of the contract."""
    if not isinstance(payload, dict):
        return
    _check_keys(payload, PLAN_KEYS, (), violations)
    steps = payload.get("steps")
    for index, step in enumerate(steps if isinstance(steps, list) else []):
        if violations.full:
            break
        if isinstance(step, dict):
            _check_keys(step, STEP_KEYS, ("steps", index), violations)
            if isinstance(step.get("tool"), dict):
                _check_keys(step["tool"], TOOL_KEYS, ("steps", index, "tool"), violations)


def _check_keys(
    holder: dict[str, Any],
    known_keys: frozenset[str],
    place: tuple[str | int, ...],
    violations: Violations,
) -> None:
    for key in holder:
        if key not in known_keys:
            message = explain_unknown_key(key, known_keys)
            violations.add(point(*place, key), "key_unknown", message)


def explain_unknown_key(key: str, known_keys: Collection[str]) -> str:
    """Return what was expected instead of an unknown key, and which key it stands for."""
    meant = key_meant(key, known_keys)
    hint = f"; {quote(meant)} is the key for it" if meant else ""
    return f"expected only the keys {', '.join(sorted(known_keys))}, got {quote(key)}{hint}"


def plain_name(key: str) -> str:
    """Return a key without case, spaces, underscores and hyphens."""
    return _SEPARATORS.sub("", key).casefold()


def key_meant(key: str, known_keys: Collection[str]) -> str | None:
    """Return the known key that a key is another spelling or name of, if there is one."""
    plain = plain_name(key)
    for known in known_keys:
        if plain == plain_name(known) or plain in NEAR_NAMES.get(known, ()):
            return known
    return None

"""The payload validator: every rule, checked before any tool runs.

It coerces nothing, never raises for any JSON value, is linear in the size of the payload and
returns the first 100 violations.
"""

import difflib
import math
from collections.abc import Collection, Iterable
from typing import Any

from failsoft.plans.contract import (
    CONTRACT_VERSION,
    MAX_DEPTH,
    MAX_INTEGER_BITS,
    MAX_NODES,
    MAX_STEPS,
    MAX_STRING_BYTES,
)
from failsoft.plans.ordering import order_steps
from failsoft.plans.shapes import (
    check_keys,
    check_sequence,
    check_shapes,
    known_indices,
    references_of,
)
from failsoft.plans.violations import (
    Link,
    Violation,
    Violations,
    describe_cycle,
    name_step,
    parts_of,
    point,
    quote,
)

TOOL_UNKNOWN = "tool_unknown"
# A text of this many characters is within the limit in UTF-8, with four bytes for each.
_SURELY_SHORT = MAX_STRING_BYTES // 4


def check_bounds(value: object, violations: Violations) -> bool:
    """Check depth, size and JSON types; return whether a string looks like a reference.

    Linear in the number of nodes; stops at the limit of values.
    """
    nodes = 0
    # Containers to visit: value, depth, and the path back to the root.
    pending: list[tuple[Any, int, Link | None]] = []
    pending += [(value, 1, None)] if isinstance(value, (dict, list)) else []
    mentions_output = not pending and _check_scalar(value, None, violations)
    while pending and not violations.full:
        container, depth, link = pending.pop()
        nodes += len(container)
        if nodes > MAX_NODES:
            violations.add("", "too_many_values", f"expected at most {MAX_NODES} values")
            break
        is_object = isinstance(container, dict)
        items: Iterable[tuple[Any, Any]] = container.items() if is_object else enumerate(container)
        for key, item in items:
            if is_object and (type(key) is not str or len(key) > _SURELY_SHORT):
                _check_key(key, link, violations)
            kind = type(item)
            if kind is str and len(item) <= _SURELY_SHORT:
                mentions_output |= item[:1] == "$"
            elif kind is int and item.bit_length() <= MAX_INTEGER_BITS:
                continue
            elif not isinstance(item, (dict, list)):
                mentions_output |= _check_scalar(item, (link, key), violations)
            elif depth == MAX_DEPTH:
                path = point(*parts_of((link, key)))
                violations.add(path, "too_deep", f"expected at most {MAX_DEPTH} levels")
            elif item:
                pending.append((item, depth + 1, (link, key)))
    return mentions_output


def _check_key(key: object, link: Link | None, violations: Violations) -> None:
    if isinstance(key, str):
        _check_string(key, link, violations)
    else:
        violations.add_type(point(*parts_of(link)), "key_type", "keys to be strings", key)


def _check_string(text: str, link: Link | None, violations: Violations) -> None:
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_STRING_BYTES:
        violations.add(
            point(*parts_of(link)),
            "string_too_long",
            f"expected at most {MAX_STRING_BYTES} bytes of text, got {size}",
        )


def _check_scalar(item: object, link: Link | None, violations: Violations) -> bool:
    if isinstance(item, str):
        _check_string(item, link, violations)
        return item[:1] == "$"
    if isinstance(item, float):
        if not math.isfinite(item):
            violations.add(point(*parts_of(link)), "number_not_finite", "expected a finite number")
    elif isinstance(item, int):
        if item.bit_length() > MAX_INTEGER_BITS:
            violations.add(
                point(*parts_of(link)), "number_too_large", "expected a number of ordinary size"
            )
    elif item is not None:
        violations.add_type(point(*parts_of(link)), "not_json", "a JSON value", item)
    return False


def check_strictly(
    steps: list[Any],
    index_of: dict[str, int],
    known_tools: Collection[str] | None,
    violations: Violations,
) -> None:
    for index, step in enumerate(steps):
        if violations.full or not isinstance(step, dict):
            continue
        dependencies = step.get("dependencies")
        for position, dependency in enumerate(
            dependencies if isinstance(dependencies, list) else []
        ):
            if isinstance(dependency, str) and index_of.get(dependency, -1) > index:
                violations.add(
                    f"/steps/{index}/dependencies/{position}",
                    "dependency_not_earlier",
                    f"expected an earlier step, but {quote(dependency)} comes later",
                )
        tool = step.get("tool")
        if isinstance(tool, str):
            violations.add(
                f"/steps/{index}/tool", "tool_not_object", "expected an object with name and args"
            )
        name = tool.get("name") if isinstance(tool, dict) else tool
        if known_tools is not None and isinstance(name, str) and name not in known_tools:
            violations.add(
                f"/steps/{index}/tool", TOOL_UNKNOWN, explain_unknown_tool(name, known_tools)
            )


def explain_unknown_tool(name: str, known_tools: Collection[str]) -> str:
    """Return what was expected instead of an unknown tool, with the nearest known one."""
    nearest = difflib.get_close_matches(name[:100], known_tools, n=1)
    hint = f"; the nearest is {quote(nearest[0])}" if nearest else ""
    return f"expected a known tool, got {quote(name)}{hint}"


def validate_payload(
    value: object, *, strict: bool = False, known_tools: Collection[str] | None = None
) -> list[Violation]:
    """Return the violations of a plan payload; an empty list means it is valid.

    `strict` also requires that tools are objects, that dependencies are earlier steps, that
    there are no unknown keys, and that tools are among `known_tools`, unless that is None.
    """
    violations = Violations()
    has_references = check_bounds(value, violations)
    if len(violations):
        return list(violations)
    steps = _read_steps(value, violations)
    index_of = check_shapes(steps, violations)
    check_sequence(index_of, violations)
    edges = []
    for index, step in enumerate(steps):
        indices = _known_dependencies(step, index, index_of, violations)
        if has_references and isinstance(step, dict):
            indices += _known_references(step, index, index_of, violations)
        edges.append(indices)
    _check_cycles(steps, edges, violations)
    if strict:
        check_strictly(steps, index_of, known_tools, violations)
        check_keys(value, violations)
    return list(violations)


def _read_steps(value: object, violations: Violations) -> list[Any]:
    if not isinstance(value, dict):
        violations.add_type("", "payload_type", "an object with steps", value)
        return []
    _check_version(value, violations)
    if "steps" not in value:
        violations.add("", "steps_missing", 'expected the key "steps"')
        return []
    steps = value["steps"]
    if not isinstance(steps, list):
        violations.add_type("/steps", "steps_type", "an array of steps", steps)
        return []
    if not steps:
        violations.add("/steps", "steps_empty", "expected at least one step")
    if len(steps) > MAX_STEPS:
        violations.add(
            "/steps", "steps_too_many", f"expected at most {MAX_STEPS} steps, got {len(steps)}"
        )
        return []
    return steps


def _check_version(payload: dict[str, Any], violations: Violations) -> None:
    version = payload.get("contract_version")
    if version is None:
        return
    major = CONTRACT_VERSION.partition(".")[0]
    if not isinstance(version, str):
        violations.add_type("/contract_version", "contract_version_type", "a string", version)
    elif version.partition(".")[0] != major:
        violations.add(
            "/contract_version",
            "contract_version_unsupported",
            f"expected version {major} of the contract, got {quote(version)}",
        )


def _known_dependencies(
    step: object, index: int, index_of: dict[str, int], violations: Violations
) -> list[int]:
    """Return the indices of the declared dependencies, and report the others."""
    if not isinstance(step, dict):
        return []
    dependencies = step.get("dependencies")
    if not isinstance(dependencies, list):
        return []
    indices = []
    for position, dependency in enumerate(dependencies):
        if not isinstance(dependency, str):
            continue
        target = index_of.get(dependency)
        if target is not None and target != index:
            indices.append(target)
        elif not violations.full:
            path = f"/steps/{index}/dependencies/{position}"
            step_name = name_step(step.get("step_id"))
            if target is None:
                violations.add(
                    path,
                    "dependency_unknown",
                    f"expected a declared step id, but step {step_name} depends on"
                    f" {quote(dependency)}, which no step declares",
                )
            else:
                violations.add(
                    path,
                    "dependency_self",
                    f"expected another step, but {step_name} depends on itself",
                )
    return indices


def _known_references(
    step: dict[str, Any], index: int, index_of: dict[str, int], violations: Violations
) -> list[int]:
    """Return the indices of the other steps that a step refers to, and report those not there."""
    references = references_of(step)
    for place, step_id in references:
        target = index_of.get(step_id)
        if violations.full or (target is not None and target != index):
            continue
        code, expected, problem = (
            ("reference_unknown", "a declared step id", "which no step declares")
            if target is None
            else ("reference_self", "another step", "its own output")
        )
        violations.add(
            point("steps", index, *place),
            code,
            f"expected the output of {expected}, but step {name_step(step.get('step_id'))} refers"
            f" to {quote(f'${step_id}.output')}, {problem}; in a literal text $$ stands for $",
        )
    return known_indices(references, index, index_of)


def _check_cycles(steps: list[Any], edges: list[list[int]], violations: Violations) -> None:
    cycle_of = order_steps(edges).cycle_of
    if not cycle_of:
        return
    names = [step.get("step_id") if isinstance(step, dict) else None for step in steps]
    for index, cycle in cycle_of.items():
        if cycle[0] == index and not violations.full:
            violations.add(
                f"/steps/{index}/dependencies",
                "dependency_cycle",
                f"expected no cycle, got {describe_cycle(names, cycle)}",
            )

"""The payload validator: every rule, checked before any tool runs (S2-4..16, X-7).

It coerces nothing, never raises for any JSON value, is linear in the size of the
payload and keeps the first 100 violations.
"""

from collections.abc import Collection
from typing import Any

from plans.core.bounds import check_bounds
from plans.core.contract import CONTRACT_VERSION, MAX_STEPS
from plans.core.ordering import order_steps
from plans.core.plain_plans import is_plainly_valid
from plans.core.shapes import check_shapes, referenced_indices
from plans.core.step_ids import check_sequence
from plans.core.strictness import check_strictly
from plans.core.violations import (
    Violation,
    Violations,
    describe_cycle,
    kind_of,
    name_step,
    quote,
)


def validate_payload(
    value: object, *, strict: bool = False, known_tools: Collection[str] | None = None
) -> list[Violation]:
    """Return the violations of a plan payload; an empty list means it may be executed.

    `strict` adds: tools are objects, dependencies point to earlier steps only, and
    tools are among `known_tools` when that is given.
    """
    if not strict and is_plainly_valid(value):
        return []
    found = Violations()
    has_references = check_bounds(value, found)
    if len(found):
        return list(found)
    steps = _read_steps(value, found)
    index_of = check_shapes(steps, found)
    check_sequence(index_of, found)
    _check_dependencies(steps, index_of, found, has_references=has_references)
    if strict:
        check_strictly(steps, index_of, known_tools, found)
    return list(found)


def _read_steps(value: object, found: Violations) -> list[Any]:
    if not isinstance(value, dict):
        found.add("", "payload_type", f"expected an object with steps, got {kind_of(value)}")
        return []
    _check_version(value, found)
    if "steps" not in value:
        found.add("", "steps_missing", 'expected the key "steps"')
        return []
    steps = value["steps"]
    if not isinstance(steps, list):
        found.add("/steps", "steps_type", f"expected an array of steps, got {kind_of(steps)}")
        return []
    if not steps:
        found.add("/steps", "steps_empty", "expected at least one step")
    if len(steps) > MAX_STEPS:
        found.add(
            "/steps",
            "steps_too_many",
            f"expected at most {MAX_STEPS} steps, got {len(steps)}",
        )
        return []
    return steps


def _check_version(payload: dict[str, Any], found: Violations) -> None:
    version = payload.get("contract_version")
    if version is None:
        return
    major = CONTRACT_VERSION.partition(".")[0]
    if not isinstance(version, str):
        found.add(
            "/contract_version",
            "contract_version_type",
            f"expected a string, got {kind_of(version)}",
        )
    elif version.partition(".")[0] != major:
        found.add(
            "/contract_version",
            "contract_version_unsupported",
            f"expected version {major} of the contract, got {quote(version)}",
        )


def _check_dependencies(
    steps: list[Any],
    index_of: dict[str, int],
    found: Violations,
    *,
    has_references: bool,
) -> None:
    edges: list[list[int]] = []
    for index, step in enumerate(steps):
        known = _known_dependencies(step, index, index_of, found)
        if has_references and isinstance(step, dict):
            known += referenced_indices(step, index, index_of)
        edges.append(known)
    _check_cycles(steps, edges, found)


def _known_dependencies(
    step: object,
    index: int,
    index_of: dict[str, int],
    found: Violations,
) -> list[int]:
    """Return the places of the declared dependencies, reporting those that are not."""
    if not isinstance(step, dict):
        return []
    dependencies = step.get("dependencies")
    if not isinstance(dependencies, list):
        return []
    known = []
    for place, dependency in enumerate(dependencies):
        if not isinstance(dependency, str):
            continue
        target = index_of.get(dependency)
        if target is not None and target != index:
            known.append(target)
        elif not found.full:
            _report_dependency(
                step, f"/steps/{index}/dependencies/{place}", dependency, target, found
            )
    return known


def _report_dependency(
    step: dict[str, Any],
    path: str,
    dependency: str,
    target: int | None,
    found: Violations,
) -> None:
    own = name_step(step.get("step_id"))
    if target is None:
        found.add(
            path,
            "dependency_unknown",
            f"expected a declared step id, but step {own} depends on"
            f" {quote(dependency)}, which no step declares",
        )
    else:
        found.add(
            path,
            "dependency_self",
            f"expected another step, but {own} depends on itself",
        )


def _check_cycles(steps: list[Any], edges: list[list[int]], found: Violations) -> None:
    cycle_of = order_steps(edges).cycle_of
    if not cycle_of:
        return
    names = [step.get("step_id") if isinstance(step, dict) else None for step in steps]
    for index, cycle in cycle_of.items():
        if cycle[0] == index and not found.full:
            found.add(
                f"/steps/{index}/dependencies",
                "dependency_cycle",
                f"expected no cycle, got {describe_cycle(names, cycle)}",
            )

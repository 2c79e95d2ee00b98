"""A payload, valid or not, made ready for execution; never raises for any JSON value.

An invalid plan reaches this point only when somebody forces it (run_plan --force) or
when the validator was bypassed. Each of its steps still yields one planned step, with a
defect where it cannot run (X-8).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from diagnostics.core.cleaning import clean_text
from plans.core.contract import META_STEP_ID
from plans.core.ordering import Ordering, order_steps
from plans.core.shapes import check_dependency_list, check_tool, referenced_indices
from plans.core.violations import Violations, describe_cycle, quote

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Defect:
    """Why a step cannot run whatever the others do.

    `unresolved` marks a failure of dependency resolution, which blocks the whole task.
    """

    reason: str
    error: str
    unresolved: bool


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step with its dependencies as places in the plan.

    `step_id` and `tool` are for showing: cleaned and redacted. `call` is the tool's
    name as the payload has it. `dependencies` include the steps that arguments refer
    to.
    """

    index: int
    step_id: str
    title: str
    tool: str | None
    call: str
    args: dict[str, JsonValue]
    dependencies: tuple[int, ...]
    defect: Defect | None


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """All steps of a plan in payload order, and the order to run them in.

    `index_of` finds a step by its id in the payload; `referenced` are those whose
    output the arguments of others refer to.
    """

    steps: tuple[PlannedStep, ...]
    order: tuple[int, ...]
    index_of: dict[str, int]
    referenced: frozenset[int]


def resolve_plan(payload: object, redact: Redact = str) -> ResolvedPlan:
    """Read the steps of a payload and resolve what they depend on."""
    raw_steps = payload.get("steps") if isinstance(payload, dict) else None
    steps = [step if isinstance(step, dict) else None for step in _as_list(raw_steps)]
    index_of = _declare(steps)
    references = [
        referenced_indices(step, index, index_of) if step else []
        for index, step in enumerate(steps)
    ]
    edges = [
        _edges(step, index, index_of, references[index])
        for index, step in enumerate(steps)
    ]
    ordering = order_steps(edges)
    names = [redact(_display_id(step, index)) for index, step in enumerate(steps)]
    planned = (
        _plan(step, index, names, edges[index], ordering, index_of, redact)
        for index, step in enumerate(steps)
    )
    return ResolvedPlan(
        tuple(planned),
        tuple(ordering.order),
        index_of,
        frozenset(other for found in references for other in found),
    )


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _declare(steps: list[dict[str, Any] | None]) -> dict[str, int]:
    index_of: dict[str, int] = {}
    for index, step in enumerate(steps):
        step_id = step.get("step_id") if step else None
        if isinstance(step_id, str):
            index_of.setdefault(step_id, index)
    return index_of


def _edges(
    step: dict[str, Any] | None,
    index: int,
    index_of: dict[str, int],
    referenced: list[int],
) -> list[int]:
    """Return the other steps this one waits for, each once."""
    declared = [
        index_of[dependency]
        for dependency in _as_list(step.get("dependencies") if step else None)
        if isinstance(dependency, str) and dependency in index_of
    ]
    return [other for other in dict.fromkeys(declared + referenced) if other != index]


def _display_id(step: dict[str, Any] | None, index: int) -> str:
    """Return an id that may stand in a result row; the place when the step has none."""
    step_id = step.get("step_id") if step else None
    if not isinstance(step_id, str) or not step_id.strip() or step_id == META_STEP_ID:
        return f"(step {index + 1})"
    return clean_text(step_id)


def _plan(
    step: dict[str, Any] | None,
    index: int,
    names: list[str],
    edges: list[int],
    ordering: Ordering,
    index_of: dict[str, int],
    redact: Redact,
) -> PlannedStep:
    step = step or {}
    call, args = _read_call(step)
    title = step.get("title")
    return PlannedStep(
        index=index,
        step_id=names[index],
        title=redact(clean_text(title)) if isinstance(title, str) else "",
        tool=redact(clean_text(call)) if call.strip() else None,
        call=call,
        args=args,
        dependencies=tuple(edges),
        defect=_find_defect(step, index, names, ordering, index_of, redact),
    )


def _read_call(step: dict[str, Any]) -> tuple[str, dict[str, JsonValue]]:
    tool = step.get("tool")
    name = tool.get("name") if isinstance(tool, dict) else tool
    args = (tool if isinstance(tool, dict) else step).get("args", {})
    return name if isinstance(name, str) else "", args if isinstance(args, dict) else {}


def _find_defect(
    step: dict[str, Any],
    index: int,
    names: list[str],
    ordering: Ordering,
    index_of: dict[str, int],
    redact: Redact,
) -> Defect | None:
    own = quote(names[index])
    unresolved = _find_unresolved(step, index, own, index_of, redact)
    if unresolved is not None:
        return unresolved
    if index in ordering.cycle_of:
        cycle = describe_cycle(names, ordering.cycle_of[index])
        return Defect(
            f"cyclic_dependency: {cycle}",
            f"Step {own} waits for itself: {cycle}.",
            True,
        )
    if not step:
        return Defect("malformed_step", f"Step {index + 1} is not an object.", False)
    return _find_malformed(step, index, own, index_of)


def _find_unresolved(
    step: dict[str, Any], index: int, own: str, index_of: dict[str, int], redact: Redact
) -> Defect | None:
    # Two, for behind a list that is merely too long may stand one that is malformed.
    found = Violations(limit=2)
    check_dependency_list(step, "", found)
    for violation in found:
        if violation.code != "dependencies_too_many":
            error = f"Step {own}: dependencies: {violation.message}."
            return Defect("malformed_dependencies", error, True)
    for dependency in step.get("dependencies", []):
        target = index_of.get(dependency)
        if target is None:
            name = quote(redact(clean_text(dependency)))
            error = f"Step {own} depends on {name}, which no step declares."
            return Defect(f"unknown_dependency: {name}", error, True)
        if target == index:
            return Defect(
                f"self_dependency: {own}", f"Step {own} depends on itself.", True
            )
    return None


def _find_malformed(
    step: dict[str, Any], index: int, own: str, index_of: dict[str, int]
) -> Defect | None:
    step_id = step.get("step_id")
    if isinstance(step_id, str) and index_of[step_id] != index:
        error = f"The id {own} was already declared by step {index_of[step_id] + 1}."
        return Defect("duplicate_step_id", error, False)
    found = Violations(limit=1)
    check_tool(step, "", found)
    for violation in found:
        return Defect(
            "malformed_step", f"Step {own}: tool: {violation.message}.", False
        )
    return None

"""Resolution of a payload, valid or not, for execution; never raises for any JSON value.

An invalid plan gets here only when it is forced (run_plan --force) or the validator was
bypassed. Each of its steps still yields one planned step, with a defect if it cannot run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import JsonValue

from failsoft.json_values import clean_text
from failsoft.plans.contract import META_STEP_ID
from failsoft.plans.ordering import find_dollars, order_steps, reverse
from failsoft.plans.shapes import check_dependency_list, check_tool, known_indices, references_of
from failsoft.plans.violations import Violations, describe_cycle, quote

Redact = Callable[[str], str]
_NO_PLACES: list[int] = []
_NO_ARGS: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Defect:
    """Why a step can never run.

    `unresolved` marks a failed dependency resolution, which blocks the whole task.
    """

    reason: str
    error: str
    unresolved: bool


# Not frozen, which halves the cost of creating thousands; treat it as immutable.
@dataclass(slots=True)
class PlannedStep:
    """One step with its dependencies as indices into the plan.

    `step_id` and `tool` are for display: cleaned and redacted. `call` is the tool name from
    the payload. `dependencies` include the steps that arguments refer to.
    """

    index: int
    step_id: str
    title: str
    tool: str | None
    call: str
    args: dict[str, JsonValue]
    dependencies: tuple[int, ...]
    defect: Defect | None
    # Whether an argument begins with `$`: a reference, or a literal `$`.
    has_dollar: bool = True

    @property
    def awaited(self) -> tuple[int, ...]:
        """The steps that this one waits for; none if it cannot run."""
        return self.dependencies if self.defect is None else ()


@dataclass(frozen=True)
class ResolvedPlan:
    """All steps of a plan in payload order, and the order to run them in.

    `index_of` maps ids in the payload to indices; `referenced` are the steps whose output the
    arguments of other steps refer to.
    """

    steps: tuple[PlannedStep, ...]
    order: tuple[int, ...]
    index_of: dict[str, int]
    referenced: frozenset[int]

    @cached_property
    def dependents(self) -> list[list[int]]:
        return reverse([step.awaited for step in self.steps])


def resolve_plan(payload: object, redact: Redact = str) -> ResolvedPlan:
    raw_steps = payload.get("steps") if isinstance(payload, dict) else None
    return _Resolver(_as_list(raw_steps), redact).resolve()


class _Resolver:
    def __init__(self, raw_steps: list[Any], redact: Redact) -> None:
        self.redact = redact
        self.is_object = [isinstance(step, dict) for step in raw_steps]
        self.steps: list[dict[str, Any]] = [
            step if isinstance(step, dict) else {} for step in raw_steps
        ]
        self.index_of = _declare(self.steps)
        self.names = [redact(_display_id(step, index)) for index, step in enumerate(self.steps)]
        # A cache of redacted texts: plans repeat tool names.
        self.shown: dict[str, str] = {}
        self.calls = [_read_call(step) for step in self.steps]
        self.has_dollar = [bool(args and find_dollars(args)) for _, args in self.calls]
        self.references = [
            known_indices(references_of(step), index, self.index_of)
            if self.has_dollar[index]
            else _NO_PLACES
            for index, step in enumerate(self.steps)
        ]
        self.edges = [self._find_edges(index) for index in range(len(self.steps))]
        self.ordering = order_steps(self.edges)

    def resolve(self) -> ResolvedPlan:
        return ResolvedPlan(
            steps=tuple(self._plan(index) for index in range(len(self.steps))),
            order=tuple(self.ordering.order),
            index_of=self.index_of,
            referenced=frozenset(index for indices in self.references for index in indices),
        )

    def _find_edges(self, index: int) -> list[int]:
        dependencies = self.steps[index].get("dependencies")
        if not dependencies and not self.references[index]:
            return _NO_PLACES
        index_of = self.index_of
        declared = [
            index_of.get(dependency, index)
            for dependency in _as_list(dependencies)
            if isinstance(dependency, str)
        ]
        others = dict.fromkeys(declared + self.references[index])
        others.pop(index, None)
        return list(others)

    def _plan(self, index: int) -> PlannedStep:
        call, args = self.calls[index]
        title = self.steps[index].get("title")
        return PlannedStep(
            index=index,
            step_id=self.names[index],
            title=self._show(title) if isinstance(title, str) else "",
            tool=self._show(call) if call.strip() else None,
            call=call,
            args=args,
            dependencies=tuple(self.edges[index]),
            defect=self._find_unresolved(index)
            or self._find_cycle(index)
            or self._find_malformed(index),
            has_dollar=self.has_dollar[index],
        )

    def _show(self, text: str) -> str:
        shown = self.shown.get(text)
        if shown is None:
            shown = self.shown[text] = self.redact(clean_text(text))
        return shown

    def _find_unresolved(self, index: int) -> Defect | None:
        step = self.steps[index]
        dependencies = step.get("dependencies", _NO_PLACES)
        if not (isinstance(dependencies, list) and all(isinstance(d, str) for d in dependencies)):
            # Two: a list that is too long may also be malformed.
            violations = Violations(limit=2)
            check_dependency_list(step, "", violations)
            fault = next(one for one in violations if one.code != "dependencies_too_many")
            error = f"Step {quote(self.names[index])}: dependencies: {fault.message}."
            return Defect("malformed_dependencies", error, True)
        index_of = self.index_of
        for dependency in dependencies:
            target = index_of.get(dependency)
            if target is None:
                name = quote(self._show(dependency))
                error = (
                    f"Step {quote(self.names[index])} depends on {name}, which no step declares."
                )
                return Defect(f"unknown_dependency: {name}", error, True)
            if target == index:
                quoted_id = quote(self.names[index])
                error = f"Step {quoted_id} depends on itself."
                return Defect(f"self_dependency: {quoted_id}", error, True)
        return None

    def _find_cycle(self, index: int) -> Defect | None:
        if index not in self.ordering.cycle_of:
            return None
        cycle = describe_cycle(self.names, self.ordering.cycle_of[index])
        error = f"Step {quote(self.names[index])} waits for itself: {cycle}."
        return Defect(f"cyclic_dependency: {cycle}", error, True)

    def _find_malformed(self, index: int) -> Defect | None:
        step = self.steps[index]
        if not self.is_object[index]:
            error = f"Step {index + 1} is not an object."
            return Defect("malformed_step", error, False)
        step_id = step.get("step_id")
        first = self.index_of.get(step_id, index) if isinstance(step_id, str) else index
        if first != index:
            quoted_id = quote(self.names[index])
            error = f"The id {quoted_id} was already declared by step {first + 1}."
            return Defect("duplicate_step_id", error, False)
        if _is_well_formed_call(step):
            return None
        quoted_id = quote(self.names[index])
        violations = Violations(limit=1)
        check_tool(step, "", violations)
        for violation in violations:
            error = f"Step {quoted_id}: tool: {violation.message}."
            return Defect("malformed_step", error, False)
        return None


def _is_well_formed_call(step: dict[str, Any]) -> bool:
    """Whether tool and arguments have the usual shape: the fast path."""
    tool = step.get("tool")
    if type(tool) is not dict:
        args = step.get("args", _NO_ARGS)
        return type(tool) is str and bool(tool.strip()) and type(args) is dict
    name, args = tool.get("name"), tool.get("args", _NO_ARGS)
    has_name = type(name) is str and bool(name.strip())
    return has_name and type(args) is dict and "args" not in step


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text_or_empty(value: object) -> str:
    return str.__str__(value) if isinstance(value, str) else ""


def _declare(steps: list[dict[str, Any]]) -> dict[str, int]:
    index_of: dict[str, int] = {}
    for index, step in enumerate(steps):
        step_id = step.get("step_id")
        if isinstance(step_id, str):
            index_of.setdefault(step_id, index)
    return index_of


def _display_id(step: dict[str, Any], index: int) -> str:
    step_id = _text_or_empty(step.get("step_id"))
    if not step_id.strip() or step_id == META_STEP_ID:
        return f"(step {index + 1})"
    return clean_text(step_id)


def _read_call(step: dict[str, Any]) -> tuple[str, dict[str, JsonValue]]:
    tool = step.get("tool")
    name = tool.get("name") if isinstance(tool, dict) else tool
    args = (tool if isinstance(tool, dict) else step).get("args", {})
    return _text_or_empty(name), args if isinstance(args, dict) else {}

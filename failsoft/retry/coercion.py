"""Leniency towards the answers of planners; every coercion is recorded."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from failsoft.json_values import escape_pointer
from failsoft.parsing.leniency import UNKNOWN_KEY, Softened, is_plain_integer, read_object, soften
from failsoft.plans.contract import PLAN_KEYS, STEP_KEYS, TOOL_KEYS
from failsoft.retry.proposals import PROPOSALS

ALIASES = {"pass": "complete", "fail": "incomplete"}


class CheckAnswer(BaseModel):
    """The answer of a completion check; the caller compares `check_id`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    decision: Literal["complete", "incomplete"]
    check_id: Annotated[str, Field(min_length=1)] | None = None
    reasons: list[JsonValue] = []
    fingerprints: list[JsonValue] = []


DECISIONS: TypeAdapter[CheckAnswer] = TypeAdapter(CheckAnswer)


@dataclass(slots=True)
class SoftenedValue:
    """A softened value, its leniencies, and the mapping to positions in the original."""

    value: Any
    done: list[Softened] = field(default_factory=list)
    # Maps a pointer into `value` to the pointer into the original document.
    written: Callable[[str], str] = str

    def note(self, pointer: str, kind: str) -> None:
        """Record one leniency at a pointer into `value`."""
        self.done.append(Softened(self.written(pointer), kind))


def soften_proposal(value: Any) -> SoftenedValue:  # noqa: ANN401 - any JSON
    """Soften one next step."""
    if not isinstance(value, dict):
        return SoftenedValue(value)
    return SoftenedValue(*soften(value, PROPOSALS))


def soften_decision(value: Any) -> SoftenedValue:  # noqa: ANN401 - any JSON
    """Soften the decision of a completion check: PASS means complete, FAIL incomplete."""
    if not isinstance(value, dict):
        return SoftenedValue(value)
    softened = SoftenedValue(dict(value))
    decision = value.get("decision")
    if isinstance(decision, str) and decision.lower() in ALIASES:
        softened.value["decision"] = ALIASES[decision.lower()]
        softened.note("/decision", "pass_or_fail")
    softened.value, leniencies = soften(softened.value, DECISIONS)
    softened.done += leniencies
    return softened


def soften_plan(value: Any) -> SoftenedValue:  # noqa: ANN401 - any JSON
    """Unwrap a plan, accept a bare list as its steps, and soften each step."""
    softened = _unwrap(value)
    plan = softened.value
    if not isinstance(plan, dict):
        return softened
    plan = softened.value = dict(plan)
    _drop_unknown(plan, PLAN_KEYS, "", softened)
    if isinstance(plan.get("steps"), list):
        plan["steps"] = [
            _soften_step(step, f"/steps/{index}", softened)
            for index, step in enumerate(plan["steps"])
        ]
    return softened


def _unwrap(value: Any) -> SoftenedValue:  # noqa: ANN401 - any JSON
    """Find the plan: as an object, as a bare list, or under the only key that holds either."""
    if _is_steps(value):
        return _bare_list(value, "")
    if not isinstance(value, dict) or "steps" in value:
        return SoftenedValue(value)
    holders = [key for key, inner in value.items() if _is_plan(inner) or _is_steps(inner)]
    if len(holders) != 1:
        return SoftenedValue(value)
    key = holders[0]
    path = f"/{escape_pointer(key)}"
    inner = value[key]
    if _is_steps(inner):
        softened = _bare_list(inner, path)
    else:
        softened = SoftenedValue(inner, written=lambda pointer: path + pointer)
    softened.done.insert(0, Softened(path, "wrapper_key"))
    others = (Softened(f"/{escape_pointer(name)}", UNKNOWN_KEY) for name in value if name != key)
    softened.done += others
    return softened


def _bare_list(steps: list[Any], path: str) -> SoftenedValue:
    softened = SoftenedValue(
        {"steps": steps}, written=lambda pointer: path + pointer.removeprefix("/steps")
    )
    softened.note("", "bare_list")
    return softened


def _is_plan(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("steps"), list)


def _is_steps(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(step, dict) and ("tool" in step or "step_id" in step) for step in value)
    )


def _soften_step(step: Any, path: str, softened: SoftenedValue) -> Any:  # noqa: ANN401 - any JSON
    if not isinstance(step, dict):
        return step
    new_step = dict(step)
    _drop_unknown(new_step, STEP_KEYS, path, softened)
    if is_plain_integer(new_step.get("step_id")):
        # Kept as the name "1": the parser does not guess that it means step_1.
        new_step["step_id"] = str(new_step["step_id"])
        softened.note(f"{path}/step_id", "integer_id")
    if "dependencies" in new_step:
        at = f"{path}/dependencies"
        new_step["dependencies"] = _soften_dependencies(new_step["dependencies"], at, softened)
    _read_arguments(new_step, path, softened)
    if isinstance(new_step.get("tool"), dict):
        new_step["tool"] = dict(new_step["tool"])
        _drop_unknown(new_step["tool"], TOOL_KEYS, f"{path}/tool", softened)
        _read_arguments(new_step["tool"], f"{path}/tool", softened)
    return new_step


def _soften_dependencies(value: Any, path: str, softened: SoftenedValue) -> Any:  # noqa: ANN401 - any JSON
    if value is None:
        softened.note(path, "null_for_list")
        return []
    if isinstance(value, str) or is_plain_integer(value):
        softened.note(path, "scalar_for_list")
        value = [value]
    if not isinstance(value, list):
        return value
    for index, item in enumerate(value):
        if is_plain_integer(item):
            softened.note(f"{path}/{index}", "integer_id")
    return [str(item) if is_plain_integer(item) else item for item in value]


def _read_arguments(holder: dict[str, Any], path: str, softened: SoftenedValue) -> None:
    """Replace `args` in a JSON string by the object that it holds."""
    arguments = read_object(holder.get("args"))
    if arguments is not None:
        holder["args"] = arguments
        softened.note(f"{path}/args", "json_string")


def _drop_unknown(
    holder: dict[str, Any], known_keys: frozenset[str], path: str, softened: SoftenedValue
) -> None:
    for key in [key for key in holder if key not in known_keys]:
        del holder[key]
        softened.note(f"{path}/{escape_pointer(key)}", UNKNOWN_KEY)

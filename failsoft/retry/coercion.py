"""Leniency towards what a planner writes: on its own path only, never in silence."""

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
    """What a completion check says; `check_id` is compared by whoever asked."""

    model_config = ConfigDict(extra="forbid", strict=True)

    decision: Literal["complete", "incomplete"]
    check_id: Annotated[str, Field(min_length=1)] | None = None
    reasons: list[JsonValue] = []
    fingerprints: list[JsonValue] = []


DECISIONS: TypeAdapter[CheckAnswer] = TypeAdapter(CheckAnswer)


@dataclass(slots=True)
class SoftenedValue:
    """A value after leniency: what was taken, and where its parts stand in what was written."""

    value: Any
    done: list[Softened] = field(default_factory=list)
    # From a pointer into `value` to the pointer into what the model wrote.
    written: Callable[[str], str] = str

    def note(self, pointer: str, kind: str) -> None:
        """Tell one leniency at a pointer into `value`."""
        self.done.append(Softened(self.written(pointer), kind))


def soften_proposal(value: Any) -> SoftenedValue:  # noqa: ANN401 - any JSON
    """Soften one next step."""
    if not isinstance(value, dict):
        return SoftenedValue(value)
    return SoftenedValue(*soften(value, PROPOSALS))


def soften_decision(value: Any) -> SoftenedValue:  # noqa: ANN401 - any JSON
    """Soften the decision of a completion check: PASS is complete, FAIL incomplete."""
    if not isinstance(value, dict):
        return SoftenedValue(value)
    softer = SoftenedValue(dict(value))
    said = value.get("decision")
    if isinstance(said, str) and said.lower() in ALIASES:
        softer.value["decision"] = ALIASES[said.lower()]
        softer.note("/decision", "pass_or_fail")
    softer.value, more = soften(softer.value, DECISIONS)
    softer.done += more
    return softer


def soften_plan(value: Any) -> SoftenedValue:  # noqa: ANN401 - any JSON
    """Unwrap a plan, take a bare list for its steps, and soften each step."""
    softer = _unwrap(value)
    plan = softer.value
    if not isinstance(plan, dict):
        return softer
    plan = softer.value = dict(plan)
    _drop_unknown(plan, PLAN_KEYS, "", softer)
    if isinstance(plan.get("steps"), list):
        plan["steps"] = [
            _soften_step(step, f"/steps/{index}", softer)
            for index, step in enumerate(plan["steps"])
        ]
    return softer


def _unwrap(value: Any) -> SoftenedValue:  # noqa: ANN401 - any JSON
    """Find the plan: as it should be, as a bare list, or under the one key that holds either."""
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
        softer = _bare_list(inner, path)
    else:
        softer = SoftenedValue(inner, written=lambda pointer: path + pointer)
    softer.done.insert(0, Softened(path, "wrapper_key"))
    others = (Softened(f"/{escape_pointer(name)}", UNKNOWN_KEY) for name in value if name != key)
    softer.done += others
    return softer


def _bare_list(steps: list[Any], path: str) -> SoftenedValue:
    softer = SoftenedValue(
        {"steps": steps}, written=lambda pointer: path + pointer.removeprefix("/steps")
    )
    softer.note("", "bare_list")
    return softer


def _is_plan(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("steps"), list)


def _is_steps(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(step, dict) and ("tool" in step or "step_id" in step) for step in value)
    )


def _soften_step(step: Any, path: str, softer: SoftenedValue) -> Any:  # noqa: ANN401 - any JSON
    if not isinstance(step, dict):
        return step
    soft = dict(step)
    _drop_unknown(soft, STEP_KEYS, path, softer)
    if is_plain_integer(soft.get("step_id")):
        # As a name: whether 1 means step_1 is not for a parser to say.
        soft["step_id"] = str(soft["step_id"])
        softer.note(f"{path}/step_id", "integer_id")
    if "dependencies" in soft:
        at = f"{path}/dependencies"
        soft["dependencies"] = _soften_dependencies(soft["dependencies"], at, softer)
    _read_arguments(soft, path, softer)
    if isinstance(soft.get("tool"), dict):
        soft["tool"] = dict(soft["tool"])
        _drop_unknown(soft["tool"], TOOL_KEYS, f"{path}/tool", softer)
        _read_arguments(soft["tool"], f"{path}/tool", softer)
    return soft


def _soften_dependencies(value: Any, path: str, softer: SoftenedValue) -> Any:  # noqa: ANN401 - any JSON
    if value is None:
        softer.note(path, "null_for_list")
        return []
    if isinstance(value, str) or is_plain_integer(value):
        softer.note(path, "scalar_for_list")
        value = [value]
    if not isinstance(value, list):
        return value
    for index, item in enumerate(value):
        if is_plain_integer(item):
            softer.note(f"{path}/{index}", "integer_id")
    return [str(item) if is_plain_integer(item) else item for item in value]


def _read_arguments(holder: dict[str, Any], path: str, softer: SoftenedValue) -> None:
    """Replace `args` given as a JSON string by the object in it."""
    found = read_object(holder.get("args"))
    if found is not None:
        holder["args"] = found
        softer.note(f"{path}/args", "json_string")


def _drop_unknown(
    holder: dict[str, Any], known: frozenset[str], path: str, softer: SoftenedValue
) -> None:
    for key in [key for key in holder if key not in known]:
        del holder[key]
        softer.note(f"{path}/{escape_pointer(key)}", UNKNOWN_KEY)

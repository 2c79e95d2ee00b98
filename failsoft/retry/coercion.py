"""Leniency towards the answers of planners; every coercion is recorded.

Near names of keys are read as the keys that they stand for. Only remarks and nulls are dropped:
any other unknown key may carry meaning, and is left for the validator to refuse.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from types import UnionType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from failsoft.json_values import escape_pointer
from failsoft.parsing.leniency import UNKNOWN_KEY, Softened, is_plain_integer, read_document, soften
from failsoft.plans.contract import PLAN_KEYS, STEP_KEYS, TOOL_KEYS
from failsoft.plans.shapes import key_meant, plain_name
from failsoft.retry.proposals import PROPOSAL_KEYS, PROPOSALS

ALIASES = {"pass": "complete", "fail": "incomplete"}
NEAR_NAME = "near_name"
# Keys for people, compared as near names are.
REMARKS = frozenset((
    "comment", "comments", "description", "explanation", "goal", "intent", "note", "notes",
    "objective", "purpose", "rationale", "reason", "reasoning", "reasons", "remark", "remarks",
    "summary", "thinking", "thought", "thoughts", "title", "why",
))  # fmt: skip
# Keys that announce what an answer would look like, or that rule it out; neither is an answer.
NO_ANSWERS = re.compile(
    r"(?:examples?|samples?|template|rejected|discarded|previous|old|wrong|invalid|cancelled)"
    r"(?:plans?|answers?|responses?|outputs?|versions?)?|format|schema"
)
MAX_WRAPPERS = 4


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
    """A softened value, its leniencies, and where its parts are in the document."""

    value: Any
    done: list[Softened] = field(default_factory=list)
    # Pointers into `value` that have another place in the document, and that place.
    moved: dict[str, str] = field(default_factory=dict)

    def written(self, pointer: str) -> str:
        """Return the pointer into the document for a pointer into `value`."""
        start = pointer
        while start and start not in self.moved:
            start = start.rpartition("/")[0]
        return self.moved.get(start, start) + pointer[len(start) :]

    def note(self, pointer: str, kind: str) -> None:
        self.done.append(Softened(self.written(pointer), kind))

    def read_string(self, value: Any, kind: type | UnionType, path: str) -> Any:  # noqa: ANN401 - any JSON
        """Return what a JSON string at a pointer holds, if that is of `kind`; else the value."""
        document = read_document(value)
        if document is None or not isinstance(document.value, kind):
            return value
        for name in ("json_string", *(repair.kind for repair in document.repairs)):
            self.note(path, name)
        return document.value

    def read_keys(
        self, holder: dict[str, Any], known_keys: Collection[str], path: str
    ) -> dict[str, Any]:
        """Return the object at a pointer with its near names read, without its remarks."""
        read: dict[str, Any] = {}
        for key, value in holder.items():
            meant = key if key in known_keys else key_meant(key, known_keys)
            place = f"{path}/{escape_pointer(key)}"
            if meant is None and says_nothing(key, value):
                self.note(place, UNKNOWN_KEY)
            elif meant is None or meant in holder or meant in read:
                read[key] = value
            else:
                self.note(place, NEAR_NAME)
                self.moved[f"{path}/{meant}"] = self.written(place)
                read[meant] = value
        return read


def says_nothing(key: str, value: object) -> bool:
    """Whether an unknown key may be dropped: a null, or a remark that holds no plan."""
    return value is None or (
        plain_name(key) in REMARKS and not any(True for _ in _ways_to_plans(value, MAX_WRAPPERS))
    )


def soften_proposal(value: Any) -> SoftenedValue:  # noqa: ANN401 - any JSON
    """Soften one next step; a key of another kind of step is dropped if it is null."""
    softened = SoftenedValue(value)
    if not isinstance(value, dict):
        return softened
    read = softened.read_keys(value, PROPOSAL_KEYS, "")
    _read_arguments(read, "", softened)
    softened.value, leniencies = soften(read, PROPOSALS, says_nothing)
    for item in leniencies:
        softened.note(item.path, item.kind)
    return softened


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
    if not isinstance(softened.value, dict):
        return softened
    plan = softened.value = softened.read_keys(softened.value, PLAN_KEYS, "")
    if "steps" in plan:
        plan["steps"] = softened.read_string(plan["steps"], list, "/steps")
    if isinstance(plan.get("steps"), list):
        plan["steps"] = [
            _soften_step(step, f"/steps/{index}", softened)
            for index, step in enumerate(plan["steps"])
        ]
    return softened


def _unwrap(value: Any) -> SoftenedValue:  # noqa: ANN401 - any JSON
    """Return the only plan or list of steps in a value, with what the wrappers say besides."""
    ways = list(_ways_to_plans(value, MAX_WRAPPERS))
    if len(ways) != 1:
        return SoftenedValue(value)
    softened, path, besides = SoftenedValue(value), "", {}
    for segment in ways[0]:
        for key in softened.value if isinstance(softened.value, dict) else ():
            if key != segment:
                besides[f"{path}/{escape_pointer(key)}"] = key, softened.value[key]
        softened.value = softened.value[segment]
        path += f"/{escape_pointer(str(segment))}"
        softened.done.append(Softened(path, "wrapper_key"))
        softened.value = softened.read_string(softened.value, dict | list, path)
    softened.moved = {"": path} if path else {}
    if isinstance(softened.value, list):
        softened.note("", "bare_list")
        softened.value, softened.moved = {"steps": softened.value}, {"": path, "/steps": path}
    return softened if _add(besides, softened) else SoftenedValue(value)


def _add(besides: dict[str, tuple[str, Any]], softened: SoftenedValue) -> bool:
    """Add the keys of wrappers to a plan; return whether each has a place of its own there."""
    plan = softened.value = dict(softened.value)
    for place, (key, value) in besides.items():
        if says_nothing(key, value):
            softened.done.append(Softened(place, UNKNOWN_KEY))
        elif key in plan:
            return False
        else:
            plan[key] = value
            softened.moved[f"/{escape_pointer(key)}"] = place
    return True


def _ways_to_plans(value: Any, depth: int) -> Iterator[tuple[str | int, ...]]:  # noqa: ANN401 - any JSON
    """Yield the keys that lead to each plan or list of steps within some wrappers."""
    value = _held(value)
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list) and len(value) == 1:
        items = [(0, value[0])]
    is_found = _is_steps(value) or (isinstance(value, dict) and _is_plan(value))
    if is_found or not depth:
        yield from [()] if is_found else []
        return
    for key, inner in items:
        if NO_ANSWERS.fullmatch(plain_name(str(key))) is None:
            yield from ((key, *way) for way in _ways_to_plans(inner, depth - 1))


def _is_plan(value: dict[str, Any]) -> bool:
    """Whether an object has steps, which are not a plan in turn."""
    steps = _held(value.get("steps"))
    is_wrapper = isinstance(steps, list) and len(steps) == 1 and not _is_steps(steps)
    return isinstance(steps, list) and not (is_wrapper and any(_ways_to_plans(steps, 1)))


def _held(value: Any) -> Any:  # noqa: ANN401 - any JSON
    document = read_document(value)
    return value if document is None else document.value


def _is_steps(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_step, value))


def _is_step(value: object) -> bool:
    value = _held(value)
    return isinstance(value, dict) and any(key_meant(key, ("step_id", "tool")) for key in value)


def _soften_step(step: Any, path: str, softened: SoftenedValue) -> Any:  # noqa: ANN401 - any JSON
    step = softened.read_string(step, dict, path)
    if not isinstance(step, dict):
        return step
    new_step = softened.read_keys(step, STEP_KEYS, path)
    if is_plain_integer(new_step.get("step_id")):
        # Kept as the name "1": the parser does not guess that it means step_1.
        new_step["step_id"] = str(new_step["step_id"])
        softened.note(f"{path}/step_id", "integer_id")
    if "dependencies" in new_step:
        at = f"{path}/dependencies"
        new_step["dependencies"] = _soften_dependencies(new_step["dependencies"], at, softened)
    _read_arguments(new_step, path, softened)
    if "tool" in new_step:
        new_step["tool"] = softened.read_string(new_step["tool"], dict, f"{path}/tool")
    if isinstance(new_step.get("tool"), dict):
        new_step["tool"] = softened.read_keys(new_step["tool"], TOOL_KEYS, f"{path}/tool")
        _read_arguments(new_step["tool"], f"{path}/tool", softened)
    return new_step


def _soften_dependencies(value: Any, path: str, softened: SoftenedValue) -> Any:  # noqa: ANN401 - any JSON
    if value is None:
        softened.note(path, "null_for_list")
        return []
    value = softened.read_string(value, list, path)
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
    if "args" in holder:
        holder["args"] = softened.read_string(holder["args"], dict, f"{path}/args")

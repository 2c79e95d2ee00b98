"""The closed sets that a fix pattern is made of, and the sentences generated from them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from failsoft.actions.entries import TOOLSETS
from failsoft.events import ParseErrorType
from failsoft.plans.contract import PLAN_KEYS, STEP_KEYS, TOOL_KEYS
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.proposals import PROPOSAL_KEYS


class FixChange(StrEnum):
    """How the valid answer differs from the invalid one at a pointer."""

    ADDED = "added"
    REMOVED = "removed"
    # It was there under a name that is not of our schemas.
    RENAMED = "renamed"
    RETYPED = "retyped"
    REPLACED = "replaced"
    # The invalid answer could not be parsed, so there is nothing to compare.
    REWRITTEN = "rewritten"


class ValueShape(StrEnum):
    """The type of the value at a pointer."""

    NOTHING = "nothing"
    NULL = "null"
    BOOLEAN = "boolean"
    NUMBER = "number"
    TEXT = "text"
    LIST = "list"
    OBJECT = "object"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True, order=True)
class FixRule:
    """A kind of error and its correction."""

    schema: PlannerSchema
    error_class: ParseErrorType
    code: str
    pointer: str
    change: FixChange
    before: ValueShape = ValueShape.UNSEEN
    after: ValueShape = ValueShape.UNSEEN


def shape_of(value: object) -> ValueShape:
    match value:
        case None:
            return ValueShape.NULL
        case bool():
            return ValueShape.BOOLEAN
        case int() | float():
            return ValueShape.NUMBER
        case str():
            return ValueShape.TEXT
        case list():
            return ValueShape.LIST
        case _:
            return ValueShape.OBJECT


_WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
# Sentences about a place in the answer.
RULES: Mapping[str, str] = _WORDS["rules"]
# Sentences about the answer as a whole.
WHOLE: Mapping[str, str] = _WORDS["whole"]
CODES: frozenset[str] = frozenset(RULES) | frozenset(_WORDS["plain_codes"]) | frozenset(WHOLE)
# The missing key of a code whose pointer ends before it.
MISSING_KEYS: Mapping[str, str] = {
    "steps_missing": "steps",
    "step_id_missing": "step_id",
    "tool_missing": "tool",
    "tool_name_missing": "name",
}
STAR = "*"
OTHER = "other"
MAX_SEGMENTS = 12
ARGUMENTS = frozenset({"args"})
_CALL_KEYS = frozenset({"tool_calls", "function", "name", "arguments"})
_ENTRY_KEYS = frozenset(
    name
    for toolset in TOOLSETS.values()
    for tool in toolset.tools
    for name in (tool.list_key, *tool.groups, *(field.name for field in tool.fields))
)
OWN_KEYS: dict[PlannerSchema, frozenset[str]] = {
    PlannerSchema.PLAN: PLAN_KEYS | STEP_KEYS | TOOL_KEYS,
    PlannerSchema.NEXT_STEP: PROPOSAL_KEYS,
    PlannerSchema.ACTIONS: _CALL_KEYS | _ENTRY_KEYS,
}
SHAPES: Mapping[ValueShape, str] = {
    ValueShape.NULL: "null",
    ValueShape.BOOLEAN: "true or false",
    ValueShape.NUMBER: "a number",
    ValueShape.TEXT: "a text",
    ValueShape.LIST: "a list",
    ValueShape.OBJECT: "an object",
}


FORM = "has the form that is shown"
ANSWER = "The answer"


def own_pointer(parts: list[str], schema: PlannerSchema) -> str:
    """Return the pointer with a star for each index and each name that is not of our schemas.

    The arguments of a plan's tool belong to the tool: every name below them is a star.
    """
    own = OWN_KEYS[schema]
    names: list[str] = []
    for part in parts[:MAX_SEGMENTS]:
        is_argument = not ARGUMENTS.isdisjoint(names)
        names.append(part if part in own and not is_argument else STAR)
    return "".join(f"/{name}" for name in names)


def own_code(code: str | None) -> str:
    """Return the code of a violated rule; `other` if our validators do not have it."""
    return code if code is not None and code in CODES else OTHER


def describe(pattern: FixRule) -> str:
    """Return one sentence that a planner can follow; it contains no model output."""
    if not pattern.pointer and pattern.code in WHOLE:
        return WHOLE[pattern.code]
    place = describe_place(pattern.pointer)
    subject = f"`{place}`" if place else ANSWER
    return f"{subject} {_predicate(pattern)}."


def describe_place(pointer: str) -> str:
    """Return a pointer as a path: `/steps/*/tool` is `steps[*].tool`; "" for the whole answer."""
    path = ""
    for part in pointer.split("/")[1:]:
        path += f"[{STAR}]" if part == STAR else f".{part}" if path else part
    return path


def _predicate(pattern: FixRule) -> str:
    match pattern.change:
        case FixChange.ADDED:
            shape = SHAPES.get(pattern.after)
            return f"is never left out: it is {shape}" if shape else "is never left out"
        case FixChange.RENAMED:
            key = pattern.pointer.rpartition("/")[2]
            return f"is never left out: its key is exactly `{key}`"
        case FixChange.REMOVED:
            return RULES.get(pattern.code, "is left out")
        case FixChange.RETYPED:
            shape, other = SHAPES.get(pattern.after), SHAPES.get(pattern.before)
            return f"is {shape}, not {other}" if shape and other else FORM
        case _:
            return RULES.get(pattern.code, FORM)

"""What a fix pattern is made of: closed sets only."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from failsoft.actions.entries import TOOLSETS
from failsoft.events import ParseErrorType
from failsoft.plans.contract import PLAN_KEYS, STEP_KEYS, TOOL_KEYS
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.proposals import KINDS


class FixChange(StrEnum):
    """What the good answer has at a pointer that the broken one had not."""

    ADDED = "added"
    REMOVED = "removed"
    # It stood there under a name that is not ours.
    RENAMED = "renamed"
    RETYPED = "retyped"
    REPLACED = "replaced"
    # The broken answer could not be read, so nothing can be compared.
    REWRITTEN = "rewritten"


class ValueShape(StrEnum):
    """What stands at a pointer, without what it says."""

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
    """One way in which answers are wrong and are put right."""

    schema: PlannerSchema
    error_class: ParseErrorType
    code: str
    pointer: str
    change: FixChange
    before: ValueShape = ValueShape.UNSEEN
    after: ValueShape = ValueShape.UNSEEN


def shape_of(value: object) -> ValueShape:
    """The shape of a JSON value."""
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
# Of a place in the answer.
RULES: Mapping[str, str] = _WORDS["rules"]
# Of an answer as a whole.
WHOLE: Mapping[str, str] = _WORDS["whole"]
CODES: frozenset[str] = frozenset(RULES) | frozenset(_WORDS["plain_codes"]) | frozenset(WHOLE)
# The key that a code says is not there, where the pointer stops before it.
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
_PROPOSAL_KEYS = frozenset(name for kind in KINDS.values() for name in kind.model_fields)
_CALL_KEYS = frozenset({"tool_calls", "function", "name", "arguments"})
_ENTRY_KEYS = frozenset(
    name
    for toolset in TOOLSETS.values()
    for tool in toolset.tools
    for name in (tool.list_key, *tool.groups, *(field.name for field in tool.fields))
)
OWN_KEYS: dict[PlannerSchema, frozenset[str]] = {
    PlannerSchema.PLAN: PLAN_KEYS | STEP_KEYS | TOOL_KEYS,
    PlannerSchema.NEXT_STEP: _PROPOSAL_KEYS,
    PlannerSchema.ACTIONS: _CALL_KEYS | _ENTRY_KEYS,
}


def parts_of(pointer: str) -> list[str]:
    """The segments of a JSON pointer, unescaped."""
    if not pointer.startswith("/"):
        return []
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def own_pointer(parts: list[str], schema: PlannerSchema) -> str:
    """The pointer with a star for each index and for each name that is not ours.

    Arguments of a tool of a plan are the tool's: below them nothing is named.
    """
    own = OWN_KEYS[schema]
    named: list[str] = []
    for part in parts[:MAX_SEGMENTS]:
        is_argument = not ARGUMENTS.isdisjoint(named)
        named.append(part if part in own and not is_argument else STAR)
    return "".join(f"/{name}" for name in named)


def own_code(code: str | None) -> str:
    """The code of a broken rule, if it is one of ours."""
    return code if code is not None and code in CODES else OTHER

"""What a fix pattern is made of: closed sets only."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from failsoft.actions.entries import TOOLSETS
from failsoft.actions.verdicts import NO_CALL
from failsoft.events import ParseErrorType
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.coercion import PLAN_KEYS, STEP_KEYS, TOOL_KEYS
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


# Of a place in the answer.
RULES: Mapping[str, str] = {
    "steps_empty": "holds at least one step",
    "steps_too_many": "holds fewer steps",
    "step_id_duplicate": "is unique: no two steps have the same id",
    "step_id_empty": "is never empty",
    "step_id_padded": "has no space around it",
    "step_id_reserved": "is never the reserved name of the summary",
    "step_id_characters": "has no control characters",
    "step_id_number": "is step_1, step_2 and so on, without leading zeros",
    "step_sequence_start": "starts at step_1",
    "step_sequence_gap": "counts step_1, step_2, step_3 without a gap",
    "dependencies_too_many": "names fewer steps",
    "dependency_unknown": "names only the step_id of earlier steps of the same plan",
    "dependency_self": "names other steps, never the step itself",
    "dependency_cycle": "names earlier steps only, so that there is no circle",
    "tool_empty": "is the name of a tool, never empty",
    "args_mixed": "stands inside the tool object only, not beside it",
    "contract_version_unsupported": "is left out",
    "union_tag_invalid": "is one of the kinds that are listed",
    "union_tag_not_found": "is one of the kinds that are listed",
    "enum": "is one of the values that are listed",
    "literal_error": "is one of the values that are listed",
    "string_too_short": "is never empty",
    "string_too_long": "is short",
    "too_long": "is short",
    "too_short": "is never empty",
    "too_deep": "is not nested that deep",
    "number_not_finite": "is an ordinary number",
    "number_too_large": "is an ordinary number",
    "unknown_tool": "is one of the tools that are listed",
    "bad_envelope": "has a name and arguments",
    "empty_list": "holds at least one entry",
    "text_too_long": "is short",
    "id_length": "is the id of something that exists",
    "choice": "is one of the values that are listed",
    "whole_number": "is a whole number",
}
# Codes that say what change and shapes say already.
PLAIN_CODES = frozenset(
    {
        "payload_type",
        "object_type",
        "steps_missing",
        "steps_type",
        "step_type",
        "step_id_missing",
        "step_id_type",
        "title_type",
        "dependencies_type",
        "dependency_type",
        "tool_missing",
        "tool_type",
        "tool_name_missing",
        "tool_name_type",
        "args_type",
        "contract_version_type",
        "missing",
        "extra_forbidden",
        "string_type",
        "list_type",
        "dict_type",
        "int_type",
        "bool_type",
        "model_type",
        "text_type",
        "id_type",
        "integer_type",
        "required",
    }
)
# Of an answer as a whole.
WHOLE: Mapping[str, str] = {
    ParseErrorType.NOT_JSON: (
        "Write plain JSON: double quotes around keys and texts, no comments, no text around it."
    ),
    ParseErrorType.EMPTY_OUTPUT: "Never leave the answer empty.",
    ParseErrorType.TRUNCATED: (
        "Keep the answer short, so that it ends: few steps, short texts, every bracket closed."
    ),
    ParseErrorType.MULTIPLE_OBJECTS: "Write one JSON object, not several.",
    ParseErrorType.DUPLICATE_KEY: "Write each key once in an object.",
    NO_CALL: "Call at least one of the tools that are listed.",
}
CODES = frozenset(RULES) | PLAIN_CODES | frozenset(WHOLE)
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
    for name in (
        tool.list_key,
        *tool.groups,
        *(field.name for field in tool.fields),
    )
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
    return code if code in CODES else OTHER

"""Patterns from a recovery: an invalid answer compared with the valid one after it.

1. An answer that could not be parsed gives a pattern of its error class as a whole.
2. Otherwise each error is located in both answers, as deep as both go. The change is what the
   valid one has in addition, or has in another shape.
3. There are at most `MAX_LEARNED` patterns, in the order of the errors; a refusal gives none.

It never raises, for any answer. No text of an answer is stored: a pattern is made of closed sets,
and its sentence is generated from them.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from failsoft.actions.entries import TOOLSETS
from failsoft.events import ParseErrorType, ValidationErrorItem
from failsoft.json_values import pointer_parts
from failsoft.plans.contract import PLAN_KEYS, STEP_KEYS, TOOL_KEYS
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.judging import KEY_UNKNOWN
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


MAX_LEARNED = 3
# A refusal is no error of format; an unknown class has no sentence.
UNTAUGHT = frozenset({ParseErrorType.REFUSAL, ParseErrorType.OTHER})
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Recovery:
    """An invalid answer and the valid one that followed it in the same cycle.

    `broken` is the answer after coercion, None if it cannot be parsed or compared;
    `dropped` are the pointers of its unknown keys.
    """

    schema: PlannerSchema
    error_class: ParseErrorType
    errors: tuple[ValidationErrorItem, ...]
    broken: Any
    good: Any
    dropped: tuple[str, ...] = ()


def patterns_of(recovery: Recovery) -> list[FixRule]:
    if recovery.error_class in UNTAUGHT:
        return []
    if recovery.error_class is not ParseErrorType.SCHEMA_INVALID:
        return [_rule_of_answer(recovery, recovery.error_class.value)]
    rules = [_rule_of_error(recovery, error) for error in recovery.errors]
    if any(rule.change is FixChange.RENAMED for rule in rules):
        # The key that was renamed is unknown: one fault, not two.
        rules = [rule for rule in rules if rule.code != KEY_UNKNOWN]
    return list(dict.fromkeys(rules))[:MAX_LEARNED]


def _rule_of_answer(recovery: Recovery, code: str) -> FixRule:
    return FixRule(recovery.schema, recovery.error_class, code, "", FixChange.REWRITTEN)


def _rule_of_error(recovery: Recovery, error: ValidationErrorItem) -> FixRule:
    # No code but those of our validators is stored.
    code = error.code if error.code in CODES else OTHER
    if code in WHOLE:
        return _rule_of_answer(recovery, code)
    parts = pointer_parts(error.path or "")
    if recovery.broken is None:
        pointer = own_pointer(parts, recovery.schema)
        return FixRule(recovery.schema, recovery.error_class, code, pointer, FixChange.REWRITTEN)
    change = _compare(recovery, code, parts)
    pointer = own_pointer(list(change.parts), recovery.schema)
    kind = _kind_of_change(recovery, pointer, change.kind)
    return FixRule(
        recovery.schema, recovery.error_class, code, pointer, kind, change.before, change.after
    )


def _kind_of_change(recovery: Recovery, pointer: str, kind: FixChange) -> FixChange:
    """Return RENAMED for an added key if an unknown one was beside it."""
    if kind is not FixChange.ADDED:
        return kind
    parent = pointer.rpartition("/")[0]
    dropped = (own_pointer(pointer_parts(path)[:-1], recovery.schema) for path in recovery.dropped)
    return FixChange.RENAMED if parent in dropped else kind


@dataclass(frozen=True, slots=True)
class _Difference:
    parts: tuple[str, ...]
    kind: FixChange
    before: ValueShape
    after: ValueShape


def _compare(recovery: Recovery, code: str, parts: Sequence[str]) -> _Difference:
    """Follow an error's pointer in both answers to where they differ."""
    broken, good = recovery.broken, recovery.good
    walked: list[str] = []
    for part in parts:
        inner_broken, inner_good = _child(broken, part), _child(good, part)
        if inner_broken is _NOTHING or inner_good is _NOTHING:
            are_objects = isinstance(broken, dict) and isinstance(good, dict)
            if are_objects and inner_broken is not inner_good:
                return _key_difference((*walked, part), inner_broken, inner_good)
            break
        walked.append(part)
        broken, good = inner_broken, inner_good
    before, after = shape_of(broken), shape_of(good)
    if before is not after:
        return _Difference(tuple(walked), FixChange.RETYPED, before, after)
    if isinstance(broken, dict) and isinstance(good, dict):
        # The key of the schema that only the valid answer has; the one the error names first.
        own = OWN_KEYS[recovery.schema]
        added = [key for key in good if key in own and key not in broken]
        missing = MISSING_KEYS.get(code)
        key = missing if missing in added else next(iter(added), None)
        if key is not None:
            return _key_difference((*walked, key), _NOTHING, good[key])
    return _Difference(tuple(walked), FixChange.REPLACED, before, after)


def _key_difference(parts: tuple[str, ...], broken: object, good: object) -> _Difference:
    if broken is _NOTHING:
        return _Difference(parts, FixChange.ADDED, ValueShape.NOTHING, shape_of(good))
    return _Difference(parts, FixChange.REMOVED, shape_of(broken), ValueShape.NOTHING)


def _child(value: object, part: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the value at a segment; beyond the end of a list, its last item."""
    if isinstance(value, dict):
        return value.get(part, _NOTHING)
    if not isinstance(value, list) or not value or not part.isdecimal():
        return _NOTHING
    # A very long number could fail to convert.
    index = int(part) if len(part) <= len(str(len(value))) else len(value)
    return value[min(index, len(value) - 1)]

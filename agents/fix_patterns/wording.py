"""The sentences of fix patterns, generated from closed tables."""

from collections.abc import Mapping

from agents.fix_patterns.kinds import RULES, STAR, WHOLE, FixChange, FixRule, ValueShape

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
            return _is_not(pattern.after, pattern.before)
        case _:
            return RULES.get(pattern.code, FORM)


def _is_not(shape: ValueShape, other: ValueShape) -> str:
    are_named = shape in SHAPES and other in SHAPES
    return f"is {SHAPES[shape]}, not {SHAPES[other]}" if are_named else FORM

"""Fix patterns in our own words, rendered from closed tables."""

from collections.abc import Mapping

from agents.core.fix_patterns.kinds import Change, FixPattern, Shape
from agents.core.fix_patterns.names import STAR
from agents.core.fix_patterns.rules import RULES, WHOLE

SHAPES: Mapping[Shape, str] = {
    Shape.NULL: "null",
    Shape.BOOLEAN: "true or false",
    Shape.NUMBER: "a number",
    Shape.TEXT: "a text",
    Shape.LIST: "a list",
    Shape.OBJECT: "an object",
}
FORM = "has the form that is shown"
ANSWER = "The answer"


def describe(pattern: FixPattern) -> str:
    """One sentence that a planner can follow; no word of it comes from an answer."""
    if not pattern.pointer and pattern.code in WHOLE:
        return WHOLE[pattern.code]
    place = describe_place(pattern.pointer)
    named = f"`{place}`" if place else ANSWER
    return f"{named} {_say(pattern)}."


def describe_place(pointer: str) -> str:
    """A pointer as a path: `/steps/*/tool` is `steps[*].tool`; nothing for the whole answer."""
    said = ""
    for part in pointer.split("/")[1:]:
        said += f"[{STAR}]" if part == STAR else f".{part}" if said else part
    return said


def _say(pattern: FixPattern) -> str:
    match pattern.change:
        case Change.ADDED:
            return f"is never left out{_is(pattern.after)}"
        case Change.RENAMED:
            key = pattern.pointer.rpartition("/")[2]
            return f"is never left out: its key is exactly `{key}`"
        case Change.REMOVED:
            return RULES.get(pattern.code, "is left out")
        case Change.RETYPED:
            return _is_not(pattern.after, pattern.before)
        case _:
            return RULES.get(pattern.code, FORM)


def _is(shape: Shape) -> str:
    return f": it is {SHAPES[shape]}" if shape in SHAPES else ""


def _is_not(shape: Shape, other: Shape) -> str:
    known = shape in SHAPES and other in SHAPES
    return f"is {SHAPES[shape]}, not {SHAPES[other]}" if known else FORM

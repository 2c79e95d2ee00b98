"""What a fix pattern is made of: closed sets only."""

from dataclasses import dataclass
from enum import StrEnum

from agents.core.interpreting import Schema
from diagnostics.core.events import ParseErrorType


class Change(StrEnum):
    """What the good answer has at a pointer that the broken one had not."""

    ADDED = "added"
    REMOVED = "removed"
    # It stood there under a name that is not ours.
    RENAMED = "renamed"
    RETYPED = "retyped"
    REPLACED = "replaced"
    # The broken answer could not be read, so nothing can be compared.
    REWRITTEN = "rewritten"


class Shape(StrEnum):
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
class FixPattern:
    """One way in which answers are wrong and are put right."""

    schema: Schema
    error_class: ParseErrorType
    code: str
    pointer: str
    change: Change
    before: Shape = Shape.UNSEEN
    after: Shape = Shape.UNSEEN


def shape_of(value: object) -> Shape:
    """The shape of a JSON value."""
    match value:
        case None:
            return Shape.NULL
        case bool():
            return Shape.BOOLEAN
        case int() | float():
            return Shape.NUMBER
        case str():
            return Shape.TEXT
        case list():
            return Shape.LIST
        case _:
            return Shape.OBJECT

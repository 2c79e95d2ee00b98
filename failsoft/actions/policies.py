"""What may be done with a field that a model got wrong: fall back, drop, clamp, or refuse.

Each policy reads one value and says what is taken, and by which leniencies, or why the call fails.
A field that is absent is read as `None`: models write null for what they leave out.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

JsonSchema = dict[str, Any]

_WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]+(?:\.0*)?\s*", re.ASCII)
MAX_TEXT_CHARACTERS = 50_000
MAX_LOOSE_CHARACTERS = 200
MAX_ID_CHARACTERS = 100

FALLBACK = "fallback"
DROPPED = "dropped_to_null"
CLAMPED = "clamped"
NUMERIC_STRING = "numeric_string"
INTEGRAL_FLOAT = "integral_float"
INTEGER_ID = "integer_id"


class Taken(NamedTuple):
    """A value that is used, and each leniency it took."""

    value: str | int | None
    leniencies: tuple[str, ...] = ()


class RefusedValue(NamedTuple):
    """Why a value cannot be used: our own words, never the model's."""

    code: str
    message: str


class Policy(NamedTuple):
    """How one field is described for the provider, and what is taken of its value."""

    schema: JsonSchema
    read: Callable[[object], Taken | RefusedValue]


ABSENT = Taken(None)
LEFT_OUT = Taken(None, (DROPPED,))


def strict_text(*, required: bool = False) -> Policy:
    """Text, or the call fails; absent is fine unless it is `required`."""

    def read(value: object) -> Taken | RefusedValue:
        if value is None and not required:
            return ABSENT
        if not isinstance(value, str):
            return RefusedValue("text_type", f"expected text, got {kind_of(value)}")
        if len(value) > MAX_TEXT_CHARACTERS:
            message = f"expected at most {MAX_TEXT_CHARACTERS} characters"
            return RefusedValue("text_too_long", message)
        return Taken(value)

    return Policy({"type": "string"}, read)


def loose_text(description: str) -> Policy:
    """Text; what is none or too long is dropped."""

    def read(value: object) -> Taken | RefusedValue:
        if value is None:
            return ABSENT
        is_text = isinstance(value, str) and len(value) <= MAX_LOOSE_CHARACTERS
        return Taken(str(value)) if is_text else LEFT_OUT

    return Policy({"type": "string", "description": description}, read)


def read_id(value: object) -> Taken | RefusedValue:
    """The id of something, whole or its beginning; an integer is taken as its digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value < 10**18:
            return RefusedValue("id_type", "expected an id, got a number out of range")
        return Taken(str(value), (INTEGER_ID,))
    if not isinstance(value, str):
        return RefusedValue("id_type", f"expected an id, got {kind_of(value)}")
    if not value.strip() or len(value) > MAX_ID_CHARACTERS:
        return RefusedValue("id_length", f"expected an id of 1 to {MAX_ID_CHARACTERS} characters")
    return Taken(value.strip())


IDENTIFIER = Policy(
    {"type": "string", "description": "the id, or an unambiguous beginning"}, read_id
)


def choice(
    choices: Sequence[str], otherwise: Taken | RefusedValue, absent: Taken = ABSENT
) -> Policy:
    """One of the choices, compared exactly; anything else becomes what `otherwise` says."""

    def read(value: object) -> Taken | RefusedValue:
        if isinstance(value, str) and value in choices:
            return Taken(value)
        return absent if value is None else otherwise

    return Policy({"type": "string", "enum": list(choices)}, read)


def clamped_integer(lowest: int, highest: int, description: str) -> Policy:
    """A whole number, also as text or a float, moved into its range; or the call fails."""

    def read(value: object) -> Taken | RefusedValue:
        if value is None:
            return ABSENT
        number, leniencies = _whole_number(value)
        if number is None:
            message = f"expected a whole number from {lowest} to {highest}"
            return RefusedValue("whole_number", message)
        inside = int(max(lowest, min(highest, number)))
        return Taken(inside, leniencies if inside == number else (*leniencies, CLAMPED))

    bounds = {"minimum": lowest, "maximum": highest}
    return Policy({"type": "integer", **bounds, "description": description}, read)


def kind_of(value: object) -> str:
    """Name the JSON type of a value."""
    if value is None:
        return "nothing"
    names = {bool: "a boolean", str: "text", int: "a number", float: "a number"}
    names |= {list: "a list", dict: "an object"}
    return names.get(type(value), "something else")


def _whole_number(value: object) -> tuple[int | float | None, tuple[str, ...]]:
    match value:
        case bool():
            return None, ()
        case int():
            return value, ()
        case float() if value.is_integer():
            return value, (INTEGRAL_FLOAT,)
        case str() if _WHOLE_NUMBER.fullmatch(value):
            # Not int(): it refuses thousands of digits, which the range would have cut anyway.
            return float(value), (NUMERIC_STRING,)
        case _:
            return None, ()

"""What may be done with a field that a model got wrong: fall back, drop, clamp, or refuse.

Each policy reads one value and says what is taken, and by which leniencies, or why the call fails.
A field that is absent is read as `None`: models write null for what they leave out.
"""

import re
from dataclasses import dataclass
from typing import Any, Protocol

JsonSchema = dict[str, Any]

_WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]+(?:\.0*)?\s*", re.ASCII)

FALLBACK = "fallback"
DROPPED = "dropped_to_null"
CLAMPED = "clamped"
NUMERIC_STRING = "numeric_string"
INTEGRAL_FLOAT = "integral_float"
INTEGER_ID = "integer_id"


@dataclass(frozen=True, slots=True)
class Taken:
    """A value that is used, and each leniency it took."""

    value: str | int | None
    leniencies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedValue:
    """Why a value cannot be used: our own words, never the model's."""

    code: str
    message: str


class Policy(Protocol):
    """How one field is read."""

    def read(self, value: object) -> Taken | RefusedValue:
        """Take or refuse a value; None when the field is absent or null."""
        ...

    def schema(self) -> JsonSchema:
        """Describe the field for the provider."""
        ...


@dataclass(frozen=True, slots=True)
class StrictText:
    """Text, or the call fails."""

    required: bool = False
    max_characters: int = 50_000

    def read(self, value: object) -> Taken | RefusedValue:
        """Take text as it is; absent is fine unless it is required."""
        if value is None and not self.required:
            return Taken(None)
        if not isinstance(value, str):
            return RefusedValue("text_type", f"expected text, got {kind_of(value)}")
        if len(value) > self.max_characters:
            return RefusedValue(
                "text_too_long", f"expected at most {self.max_characters} characters"
            )
        return Taken(value)

    def schema(self) -> JsonSchema:
        """A string."""
        return {"type": "string"}


@dataclass(frozen=True, slots=True)
class LooseText:
    """Text, anything else is dropped."""

    description: str = ""
    max_characters: int = 200

    def read(self, value: object) -> Taken | RefusedValue:
        """Take text as it is, drop what is none or too long."""
        if value is None:
            return Taken(None)
        if not isinstance(value, str) or len(value) > self.max_characters:
            return Taken(None, (DROPPED,))
        return Taken(value)

    def schema(self) -> JsonSchema:
        """A string."""
        return {"type": "string", "description": self.description}


@dataclass(frozen=True, slots=True)
class Identifier:
    """The id of something, whole or its beginning; an integer is taken as its digits."""

    max_characters: int = 100

    def read(self, value: object) -> Taken | RefusedValue:
        """Take text that is not blank."""
        if isinstance(value, int) and not isinstance(value, bool):
            if not 0 <= value < 10**18:
                return RefusedValue("id_type", "expected an id, got a number out of range")
            return Taken(str(value), (INTEGER_ID,))
        if not isinstance(value, str):
            return RefusedValue("id_type", f"expected an id, got {kind_of(value)}")
        if not value.strip() or len(value) > self.max_characters:
            return RefusedValue(
                "id_length", f"expected an id of 1 to {self.max_characters} characters"
            )
        return Taken(value.strip())

    def schema(self) -> JsonSchema:
        """A string."""
        return {"type": "string", "description": "the id, or an unambiguous beginning"}


@dataclass(frozen=True, slots=True)
class FallbackChoice:
    """One of the choices, compared exactly; everything else becomes the default.

    `when_absent`: what a field that is not there becomes; None leaves it out.
    """

    choices: tuple[str, ...]
    default: str
    when_absent: str | None = None

    def read(self, value: object) -> Taken | RefusedValue:
        """Take a choice, or the default."""
        if isinstance(value, str) and value in self.choices:
            return Taken(value)
        if value is not None:
            return Taken(self.default, (FALLBACK,))
        if self.when_absent is None:
            return Taken(None)
        return Taken(self.when_absent, (FALLBACK,))

    def schema(self) -> JsonSchema:
        """An enumeration."""
        return {"type": "string", "enum": list(self.choices)}


@dataclass(frozen=True, slots=True)
class OptionalChoice:
    """One of the choices, compared exactly; everything else is dropped."""

    choices: tuple[str, ...]

    def read(self, value: object) -> Taken | RefusedValue:
        """Take a choice, or nothing."""
        if value is None or (isinstance(value, str) and value in self.choices):
            return Taken(value)
        return Taken(None, (DROPPED,))

    def schema(self) -> JsonSchema:
        """An enumeration."""
        return {"type": "string", "enum": list(self.choices)}


@dataclass(frozen=True, slots=True)
class StrictChoice:
    """One of the choices, or the call fails: a wrong one is worse than none."""

    choices: tuple[str, ...]

    def read(self, value: object) -> Taken | RefusedValue:
        """Take a choice; absent is fine."""
        if value is None or (isinstance(value, str) and value in self.choices):
            return Taken(value)
        return RefusedValue("choice", f"expected one of {', '.join(self.choices)}")

    def schema(self) -> JsonSchema:
        """An enumeration."""
        return {"type": "string", "enum": list(self.choices)}


@dataclass(frozen=True, slots=True)
class ClampedInteger:
    """A whole number, moved into its range; what is no whole number fails the call."""

    lowest: int
    highest: int
    description: str = ""

    def read(self, value: object) -> Taken | RefusedValue:
        """Take a whole number, also as text or as a float; a boolean is none."""
        if value is None:
            return Taken(None)
        number, leniencies = _whole_number(value)
        if number is None:
            return RefusedValue(
                "whole_number",
                f"expected a whole number from {self.lowest} to {self.highest}",
            )
        inside = int(max(self.lowest, min(self.highest, number)))
        if inside != number:
            leniencies += (CLAMPED,)
        return Taken(inside, leniencies)

    def schema(self) -> JsonSchema:
        """An integer in its range."""
        return {
            "type": "integer",
            "minimum": self.lowest,
            "maximum": self.highest,
            "description": self.description,
        }


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

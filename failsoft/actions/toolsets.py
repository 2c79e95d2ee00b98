"""Toolsets: tools whose calls hold lists of entries, with a policy for each field.

A policy reads one value and returns the accepted value with its leniencies, or a refusal: fall
back, drop, clamp, or refuse. An absent field is read as `None`: models write null for omitted
fields.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from failsoft.retry.answer_schemas import closed_object
from failsoft.retry.prompts import ToolOffer

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
    value: str | int | None
    leniencies: tuple[str, ...] = ()


class RefusedValue(NamedTuple):
    """Why a value is refused; the message never contains model output."""

    code: str
    message: str


class Policy(NamedTuple):
    """The JSON Schema of a field, and the function that reads its value."""

    schema: JsonSchema
    read: Callable[[object], Taken | RefusedValue]


ABSENT = Taken(None)
LEFT_OUT = Taken(None, (DROPPED,))


def strict_text(*, required: bool = False) -> Policy:
    """Return the policy of text; a wrong type or length fails the call."""

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
    """Return the policy of optional text; a wrong type or length is dropped."""

    def read(value: object) -> Taken | RefusedValue:
        if value is None:
            return ABSENT
        is_text = isinstance(value, str) and len(value) <= MAX_LOOSE_CHARACTERS
        return Taken(str(value)) if is_text else LEFT_OUT

    return Policy({"type": "string", "description": description}, read)


def read_id(value: object) -> Taken | RefusedValue:
    """Read an id or a prefix of one; an integer is accepted as its digits."""
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
    choices: Sequence[str], fallback: Taken | RefusedValue, absent: Taken = ABSENT
) -> Policy:
    """Return the policy of an exact choice; other values become `fallback`."""

    def read(value: object) -> Taken | RefusedValue:
        if isinstance(value, str) and value in choices:
            return Taken(value)
        return absent if value is None else fallback

    return Policy({"type": "string", "enum": list(choices)}, read)


def clamped_integer(lowest: int, highest: int, description: str) -> Policy:
    """Return the policy of a whole number, also as text or float, clamped to a range."""

    def read(value: object) -> Taken | RefusedValue:
        if value is None:
            return ABSENT
        number, leniencies = _whole_number(value)
        if number is None:
            message = f"expected a whole number from {lowest} to {highest}"
            return RefusedValue("whole_number", message)
        clamped = int(max(lowest, min(highest, number)))
        return Taken(clamped, leniencies if clamped == number else (*leniencies, CLAMPED))

    bounds = {"minimum": lowest, "maximum": highest}
    return Policy({"type": "integer", **bounds, "description": description}, read)


def kind_of(value: object) -> str:
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
            # Not int(), which refuses thousands of digits; they are clamped anyway.
            return float(value), (NUMERIC_STRING,)
        case _:
            return None, ()


# The version of the format of native tool calls, sent with events.
ACTIONS_VERSION = "1"


@dataclass(frozen=True, slots=True)
class EntryField:
    """A field of an entry; `under` names the nested object that holds it."""

    name: str
    policy: Policy
    required: bool = False
    under: str | None = None


@dataclass(frozen=True, slots=True)
class ActionTool:
    """A tool: each entry of the list under `list_key` becomes one action of `type`."""

    name: str
    type: str
    # The verb in the summary: "created".
    past: str
    list_key: str
    fields: tuple[EntryField, ...]
    description: str = ""

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(field.under for field in self.fields if field.under))

    def schema(self) -> JsonSchema:
        entry = self._object(None)
        for group in self.groups:
            entry["properties"][group] = self._object(group)
            entry["required"].append(group)
        entries = {"type": "array", "minItems": 1, "items": entry}
        return closed_object({self.list_key: entries})

    def _object(self, group: str | None) -> JsonSchema:
        group_fields = [field for field in self.fields if field.under == group]
        fields = closed_object({field.name: dict(field.policy.schema) for field in group_fields})
        return {**fields, "required": [field.name for field in group_fields if field.required]}


@dataclass(frozen=True, slots=True)
class Toolset:
    """A named list of tools, in the order of the summary."""

    name: str
    tools: tuple[ActionTool, ...]

    def find(self, name: str) -> ActionTool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    @property
    def list_keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tool.list_key for tool in self.tools))

    def offers(self) -> tuple[ToolOffer, ...]:
        return tuple(ToolOffer(tool.name, tool.description, tool.schema()) for tool in self.tools)

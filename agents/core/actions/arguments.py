"""The arguments of a tool call, which come as text or as an object."""

import json
from dataclasses import dataclass
from typing import Any

from agents.core.actions.policies import kind_of
from diagnostics.core.events import Repair
from diagnostics.core.recovery import Refused, recover


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments that were read, and what the parser had to put right (X-12)."""

    value: dict[str, Any]
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why arguments could not be read; line and column are places in their text."""

    code: str
    message: str
    line: int | None = None
    column: int | None = None


def read_arguments(given: object) -> Arguments | Unreadable:
    """Read an object, or the one object a text holds; never raises, for anything."""
    if isinstance(given, dict):
        return Arguments(given)
    if not isinstance(given, str):
        return Unreadable(
            "arguments_type",
            f"expected the arguments as text or as an object, got {kind_of(given)}",
        )
    if not given.strip():
        return Unreadable("empty_output", "the arguments are empty", 1, 1)
    read = recover(given)
    if isinstance(read, Refused):
        return Unreadable(
            read.error_type.value,
            f"the arguments cannot be read: expected {read.expected}",
            read.line,
            read.column,
        )
    if not isinstance(read.value, dict):
        return Unreadable("object_type", "expected the arguments as one object")
    return Arguments(read.value, read.repairs)


def written_arguments(given: object) -> str:
    """The arguments as the model wrote them, or as near as can be told."""
    if isinstance(given, str):
        return given
    if given is None:
        return ""
    try:
        return json.dumps(given, ensure_ascii=False, default=repr)
    except (ValueError, TypeError, RecursionError):
        return f"[{kind_of(given)}]"

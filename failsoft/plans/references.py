"""References between steps: `$step_1.output.field` is the output of another step.

Only a whole string is a reference: `$<step id>.output`, then any number of `.<key>` or
`.<index>`. A leading `$$` means a literal `$`. Nothing is evaluated: a reference only
indexes objects and arrays.
"""

import re
from collections.abc import Callable

from pydantic import JsonValue

from failsoft.plans.violations import quote

_MAX_CHARACTERS = 1_000
_REFERENCE = re.compile(r"\$(?P<step>[^$].*?)\.output(?P<path>(?:\.[^.]+)*)\Z", re.DOTALL)

_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,6})\Z")

OutputOf = Callable[[str], JsonValue]


class UnresolvedReferenceError(Exception):
    """A reference names a step or a field that does not exist."""


def referenced_step(text: str) -> str | None:
    """Return the step id a string refers to, or None when it is no reference."""
    match = _match(text)
    return match["step"] if match else None


def find_dollars(value: JsonValue) -> list[str]:
    """Return the strings of the arguments that begin with `$`, as every reference does."""
    texts: list[str] = []
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if item[:1] == "$":
                texts.append(item)
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return texts


def find_references(value: JsonValue) -> list[str]:
    """Return the id of each step that the arguments refer to, with repeats."""
    return [match["step"] for text in find_dollars(value) if (match := _match(text))]


def resolve_references(value: JsonValue, output_of: OutputOf) -> JsonValue:
    """Return the arguments with each reference replaced by its value.

    `output_of` returns the output of a step or raises UnresolvedReferenceError, which is also
    raised when a path does not exist. Depth is bounded by the contract.
    """
    if isinstance(value, str):
        return _resolve(value, output_of) if value.startswith("$") else value
    if isinstance(value, dict):
        return {key: resolve_references(item, output_of) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve_references(item, output_of) for item in value]
    return value


def _match(text: str) -> re.Match[str] | None:
    if not text.startswith("$") or len(text) > _MAX_CHARACTERS:
        return None
    return _REFERENCE.match(text)


def _resolve(text: str, output_of: OutputOf) -> JsonValue:
    match = _match(text)
    if match is None:
        return text[1:] if text.startswith("$$") and _match(text[1:]) else text
    value = output_of(match["step"])
    for key in match["path"].split(".")[1:]:
        value = _enter(value, key, text)
    return value


def _enter(value: JsonValue, key: str, text: str) -> JsonValue:
    if isinstance(value, dict) and key in value:
        return value[key]
    if isinstance(value, list) and _INDEX.match(key) and int(key) < len(value):
        return value[int(key)]
    raise UnresolvedReferenceError(
        f"The arguments refer to {quote(text)}, but the output has no {quote(key)}."
    )

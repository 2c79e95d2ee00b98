"""The envelope of a tool call, as OpenAI's chat completions write it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from failsoft.actions.policies import kind_of

MAX_NAME_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Envelope:
    """A call that says which tool it wants; `arguments` are not yet read."""

    tool_name: str
    tool_call_id: str | None
    arguments: object


@dataclass(frozen=True, slots=True)
class BadEnvelope:
    """A call that does not: what is missing, and as much of it as there is."""

    path: tuple[str, ...]
    message: str
    tool_name: str | None = None
    tool_call_id: str | None = None
    arguments: object = None


def open_envelope(call: object) -> Envelope | BadEnvelope:
    """Read `{"id", "function": {"name", "arguments"}}`; whatever else there is plays no part."""
    if not isinstance(call, Mapping):
        return BadEnvelope((), f"expected a tool call, got {kind_of(call)}")
    identity = _short_text(call.get("id"))
    function = call.get("function")
    if not isinstance(function, Mapping):
        message = f"expected an object, got {kind_of(function)}"
        return BadEnvelope(("function",), message, tool_call_id=identity)
    arguments = function.get("arguments")
    name = _short_text(function.get("name"))
    if name is None:
        message = "expected the name of a tool"
        return BadEnvelope(("function", "name"), message, None, identity, arguments)
    if "arguments" not in function:
        message = "expected arguments"
        return BadEnvelope(("function", "arguments"), message, name, identity)
    return Envelope(name, identity, arguments)


def wrap_call(tool_call_id: str | None, name: object, arguments: object) -> dict[str, object]:
    """Write a call as an envelope, for adapters whose provider speaks otherwise."""
    function = {"name": name, "arguments": arguments}
    return {"id": tool_call_id, "type": "function", "function": function}


def _short_text(value: object) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return None
    return value[:MAX_NAME_CHARACTERS]


LIST_KEY = "tool_calls"


def written_calls(value: dict[str, Any] | list[Any]) -> list[object] | None:
    """The calls that a JSON document holds, as envelopes; None when it holds none."""
    if isinstance(value, list):
        listed: object = value if any(_is_call(item) for item in value) else None
    elif _is_call(value):
        listed = [value]
    else:
        listed = value.get(LIST_KEY)
    if not isinstance(listed, list):
        return None
    return [_envelope(item, number) for number, item in enumerate(listed, start=1)]


def _is_call(item: object) -> bool:
    return isinstance(item, Mapping) and (
        "function" in item or ("name" in item and "arguments" in item)
    )


def _envelope(item: object, number: int) -> object:
    """A bare call in an envelope; what is none stays as it is, and decoding counts it."""
    if not isinstance(item, Mapping) or "function" in item or "name" not in item:
        return item
    identity = item.get("id")
    named = identity if isinstance(identity, str) else f"call_{number}"
    if "arguments" not in item:
        return {"id": named, "function": {"name": item["name"]}}
    return wrap_call(named, item["name"], item["arguments"])

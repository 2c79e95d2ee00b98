"""The envelope of a tool call, as OpenAI's chat completions write it (S4-43)."""

from collections.abc import Mapping
from dataclasses import dataclass

from agents.core.actions.policies import kind_of

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

"""The envelope of a tool call: OpenAI's, and calls written as JSON with the keys of any maker."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from failsoft.actions.policies import kind_of
from failsoft.parsing.makers import MAKERS

MAX_NAME_CHARACTERS = 200


class Envelope(NamedTuple):
    """An opened call; its `arguments` are not parsed yet.

    `fault` is the path and the message of a missing name or missing arguments.
    """

    tool_name: str | None = None
    tool_call_id: str | None = None
    arguments: object = None
    fault: tuple[tuple[str, ...], str] | None = None


def open_envelope(call: object) -> Envelope:
    """Read `{"id", "function": {"name", "arguments"}}`; other keys are ignored."""
    if not isinstance(call, Mapping):
        return Envelope(fault=((), f"expected a tool call, got {kind_of(call)}"))
    identity = _short_text(call.get("id"))
    function = call.get("function")
    if not isinstance(function, Mapping):
        message = f"expected an object, got {kind_of(function)}"
        return Envelope(tool_call_id=identity, fault=(("function",), message))
    fault = None
    name = _short_text(function.get("name"))
    if name is None:
        fault = ("function", "name"), "expected the name of a tool"
    elif "arguments" not in function:
        fault = ("function", "arguments"), "expected arguments"
    return Envelope(name, identity, function.get("arguments"), fault)


def wrap_call(tool_call_id: str | None, name: object, arguments: object) -> dict[str, object]:
    """Return a call as an envelope, for adapters of providers with another format."""
    function = {"name": name, "arguments": arguments}
    return {"id": tool_call_id, "type": "function", "function": function}


def _short_text(value: object) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return None
    return value[:MAX_NAME_CHARACTERS]


LIST_KEY = "tool_calls"
_CALL_KEYS = [(name, arguments) for name, arguments in MAKERS["call_keys"]["pairs"]]


def written_calls(value: dict[str, Any] | list[Any]) -> list[object] | None:
    """Return the calls in a JSON document, as envelopes; None when it holds none."""
    if isinstance(value, list):
        calls: object = value if any(_is_call(item) for item in value) else None
    elif _is_call(value):
        calls = [value]
    else:
        calls = value.get(LIST_KEY)
    if not isinstance(calls, list):
        return None
    return [_envelope(item, number) for number, item in enumerate(calls, start=1)]


def _is_call(item: object) -> bool:
    return isinstance(item, Mapping) and ("function" in item or _keys_of(item) is not None)


def _keys_of(item: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the keys of the name and of the arguments, if one maker's fit."""
    keys = [pair for pair in _CALL_KEYS if pair[0] in item and pair[1] in item]
    return keys[0] if len(keys) == 1 else None


def _envelope(item: object, number: int) -> object:
    """Return a bare call as an envelope; other values unchanged, for decoding to refuse."""
    if not isinstance(item, Mapping) or "function" in item:
        return item
    keys = _keys_of(item)
    identity = item.get("id")
    call_id = identity if isinstance(identity, str) else f"call_{number}"
    if keys is not None:
        return wrap_call(call_id, item[keys[0]], item[keys[1]])
    return {"id": call_id, "function": {"name": item["name"]}} if "name" in item else item

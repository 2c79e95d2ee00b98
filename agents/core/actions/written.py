"""Calls that a model wrote as text, because it has no native ones or does not use them.

The form asked for is `{"tool_calls": [{"name": ..., "arguments": ...}]}`; a bare list and a bare
call are read too (X-20). That it was text is recorded by the attempt's output mode and preview.
"""

from collections.abc import Mapping
from typing import Any

from agents.core.actions.envelopes import wrap_call

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

"""Assembly of streamed tool calls.

A broken stream yields a broken envelope, which decoding reports as a failure; nothing raises.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from failsoft.actions.decoding import wrap_call
from failsoft.parsing.leniency import is_plain_integer


@dataclass(slots=True)
class _PartialCall:
    identity: str | None = None
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    complete_arguments: dict[str, Any] | None = None

    def envelope(self) -> dict[str, object]:
        text = "".join(self.arguments)
        arguments = text if text or self.complete_arguments is None else self.complete_arguments
        return wrap_call(self.identity, self.name, arguments)


def assemble_openai(deltas: Iterable[object]) -> list[dict[str, object]]:
    """Return the `tool_calls` of chat completion chunks as envelopes, ordered by index.

    An item without an index continues the previous call, unless it has a new id.
    """
    calls: dict[int, _PartialCall] = {}
    last = -1
    for delta in deltas:
        if not isinstance(delta, Mapping):
            continue
        last = _index_of(delta, calls, last)
        call = calls.setdefault(last, _PartialCall())
        if isinstance(delta.get("id"), str):
            call.identity = call.identity or delta["id"] or None
        function = delta.get("function")
        if isinstance(function, Mapping):
            call.name += _text(function.get("name"))
            call.arguments.append(_text(function.get("arguments")))
    return [calls[index].envelope() for index in sorted(calls)]


def assemble_anthropic(events: Iterable[object]) -> list[dict[str, object]]:
    """Return the `tool_use` blocks of a message stream as envelopes, ordered by index."""
    calls: dict[int, _PartialCall] = {}
    for event in events:
        if not isinstance(event, Mapping) or not is_plain_integer(event.get("index")):
            continue
        block, delta = event.get("content_block"), event.get("delta")
        if isinstance(block, Mapping) and block.get("type") == "tool_use":
            arguments = block.get("input")
            calls[event["index"]] = _PartialCall(
                _text(block.get("id")) or None,
                _text(block.get("name")),
                complete_arguments=arguments if isinstance(arguments, dict) else None,
            )
        elif isinstance(delta, Mapping) and event["index"] in calls:
            calls[event["index"]].arguments.append(_text(delta.get("partial_json")))
    return [calls[index].envelope() for index in sorted(calls)]


def _index_of(delta: Mapping[str, Any], calls: Mapping[int, _PartialCall], last: int) -> int:
    if is_plain_integer(delta.get("index")):
        return int(delta["index"])
    identity = delta.get("id")
    begins = isinstance(identity, str) and identity != ""
    if last not in calls or (begins and calls[last].identity not in (None, identity)):
        return max(calls, default=-1) + 1
    return last


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

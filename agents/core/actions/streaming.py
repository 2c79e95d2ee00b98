"""Tool calls that arrive in pieces, put together again.

What is broken in a stream becomes a broken envelope, which decoding counts; nothing raises.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.core.actions.envelopes import wrap_call


@dataclass(slots=True)
class _Growing:
    identity: str | None = None
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    given: dict[str, Any] | None = None

    def envelope(self) -> dict[str, object]:
        written = "".join(self.arguments)
        whole = written if written or self.given is None else self.given
        return wrap_call(self.identity, self.name, whole)


def assemble_openai(deltas: Iterable[object]) -> list[dict[str, object]]:
    """Put together the `tool_calls` items of chat completion chunks, in the order of their index.

    An item without an index goes on with the call before it, unless it brings a new id.
    """
    calls: dict[int, _Growing] = {}
    last = -1
    for delta in deltas:
        if not isinstance(delta, Mapping):
            continue
        last = _index_of(delta, calls, last)
        call = calls.setdefault(last, _Growing())
        if isinstance(delta.get("id"), str):
            call.identity = call.identity or delta["id"] or None
        function = delta.get("function")
        if isinstance(function, Mapping):
            call.name += _text(function.get("name"))
            call.arguments.append(_text(function.get("arguments")))
    return [calls[index].envelope() for index in sorted(calls)]


def assemble_anthropic(events: Iterable[object]) -> list[dict[str, object]]:
    """Put together the `tool_use` blocks of a message stream, in the order of their index."""
    calls: dict[int, _Growing] = {}
    for event in events:
        if not isinstance(event, Mapping) or not _is_index(event.get("index")):
            continue
        block, delta = event.get("content_block"), event.get("delta")
        if isinstance(block, Mapping) and block.get("type") == "tool_use":
            started = block.get("input")
            calls[event["index"]] = _Growing(
                _text(block.get("id")) or None,
                _text(block.get("name")),
                given=started if isinstance(started, dict) else None,
            )
        elif isinstance(delta, Mapping) and event["index"] in calls:
            calls[event["index"]].arguments.append(_text(delta.get("partial_json")))
    return [calls[index].envelope() for index in sorted(calls)]


def _index_of(delta: Mapping[str, Any], calls: Mapping[int, _Growing], last: int) -> int:
    if _is_index(delta.get("index")):
        return int(delta["index"])
    identity = delta.get("id")
    begins = isinstance(identity, str) and identity != ""
    if last not in calls or (begins and calls[last].identity not in (None, identity)):
        return max(calls, default=-1) + 1
    return last


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

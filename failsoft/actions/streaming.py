"""Tool calls that arrive in pieces, put together again.

What is broken in a stream becomes a broken envelope, which decoding counts; nothing raises.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from failsoft.actions.decoding import decode_tool_calls
from failsoft.actions.envelopes import wrap_call
from failsoft.actions.results import Leniency, ParseFailure, ParseResult
from failsoft.actions.toolsets import Toolset
from failsoft.json_lines import Line, LineError, answer_line


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


def answer_calls(line: bytes, number: int, toolset: Toolset) -> Line:
    """Decode one line; a line that cannot be read gives an error with its place (1-based)."""
    return answer_line(line, number, partial(_decode, toolset), NOTHING)


def _decode(toolset: Toolset, asked: Line) -> Line:
    if "tool_calls" not in asked:
        raise LineError("expected tool_calls", code="missing")
    return _describe(decode_tool_calls(asked["tool_calls"], toolset))


def _describe(result: ParseResult) -> dict[str, Any]:
    return {
        "actions": [action.flat() for action in result.actions],
        "failures": [describe_failure(failure) for failure in result.failures],
        "coerced": [_shown(item) for item in result.coerced],
        "repairs": [repair.model_dump() for repair in result.repairs],
    }


def describe_failure(failure: ParseFailure) -> dict[str, Any]:
    """A failure as it is reported, without what the model wrote."""
    return _shown(failure)


def _shown(item: ParseFailure | Leniency) -> dict[str, Any]:
    return {key: value for key, value in asdict(item).items() if key not in _NOT_SHOWN}


_NOT_SHOWN = ("raw_arguments", "call", "pointer")
NOTHING = _describe(ParseResult())

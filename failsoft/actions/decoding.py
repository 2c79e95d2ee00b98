"""From tool calls to actions, each call in isolation.

1. Open the envelope, OpenAI's or a call written as JSON with the keys of any maker; find the tool,
   parse the arguments, read each entry by its field policies.
2. A call with any error fails as a whole, with all its entries; other calls are not affected.
3. Each leniency towards a valid call is recorded with its location.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from failsoft.actions.results import Action, Leniency, ParseFailure, ParseResult
from failsoft.actions.toolsets import ActionTool, RefusedValue, Toolset, kind_of
from failsoft.events import Repair
from failsoft.json_values import clean_text, pointer_of
from failsoft.parsing import RefusedAnswer, recover
from failsoft.parsing.leniency import UNKNOWN_KEY
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


Place = tuple[str | int, ...]
IN_ARGUMENTS: Place = ("function", "arguments")
MAX_KEY_CHARACTERS = 100
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _CallError(Exception):
    """the call is invalid; where in its arguments or envelope, and why"""

    def __init__(
        self,
        place: Place,
        code: str,
        message: str,
        *,
        is_inside: bool = True,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.place, self.code, self.message, self.is_inside = place, code, message, is_inside
        # Positions in the text of the arguments.
        self.line, self.column = line, column


class _Decoded(NamedTuple):
    actions: tuple[Action, ...] = ()
    coerced: tuple[Leniency, ...] = ()
    repairs: tuple[Repair, ...] = ()


def _read_arguments(arguments: object) -> _CallError | tuple[dict[str, Any], tuple[Repair, ...]]:
    if isinstance(arguments, dict):
        return arguments, ()
    if not isinstance(arguments, str):
        message = f"expected the arguments as text or as an object, got {kind_of(arguments)}"
        return _CallError((), "arguments_type", message)
    if not arguments.strip():
        return _CallError((), "empty_output", "the arguments are empty", line=1, column=1)
    outcome = recover(arguments)
    if isinstance(outcome, RefusedAnswer):
        message = f"the arguments cannot be read: expected {outcome.expected}"
        return _CallError(
            (), outcome.error_type.value, message, line=outcome.line, column=outcome.column
        )
    if not isinstance(outcome.value, dict):
        return _CallError((), "object_type", "expected the arguments as one object")
    return outcome.value, outcome.repairs


def written_arguments(arguments: object) -> str:
    """Return the arguments as the model wrote them, or the closest text."""
    if isinstance(arguments, str):
        return arguments
    if arguments is None:
        return ""
    try:
        return json.dumps(arguments, ensure_ascii=False, default=repr)
    except (ValueError, TypeError, RecursionError):
        return f"[{kind_of(arguments)}]"


def dotted(place: Sequence[str | int]) -> str:
    """Return a place in dotted notation, `entries[0].category`."""
    path = ""
    for part in place:
        if isinstance(part, int) or not _PLAIN_KEY.fullmatch(part):
            path += f"[{part if isinstance(part, int) else repr(_cut(part))}]"
        else:
            path += f".{_cut(part)}" if path else _cut(part)
    return path


def pointer(call: int, place: Sequence[str | int]) -> str:
    """Return a place of a call as a JSON pointer into the list of tool calls."""
    return pointer_of((call, *(_cut(part) if isinstance(part, str) else part for part in place)))


def _cut(key: str) -> str:
    # Keys come from the model, and must be storable.
    return clean_text(key[:MAX_KEY_CHARACTERS])


def decode_tool_calls(calls: object, toolset: Toolset) -> ParseResult:
    """Decode the calls of an answer; never raises, for any input."""
    if calls is None:
        return ParseResult()
    if not isinstance(calls, Sequence) or isinstance(calls, str | bytes):
        message = f"expected a list of tool calls, got {kind_of(calls)}"
        raw = written_arguments(calls)
        failure = ParseFailure(None, None, "tool_calls", "bad_envelope", message, raw)
        return ParseResult(failures=(failure,), calls=1)
    outcomes = [_decode_call(call, index, toolset) for index, call in enumerate(calls)]
    decoded = [item for item in outcomes if isinstance(item, _Decoded)]
    return ParseResult(
        actions=tuple(action for item in decoded for action in item.actions),
        failures=tuple(item for item in outcomes if isinstance(item, ParseFailure)),
        coerced=tuple(leniency for item in decoded for leniency in item.coerced),
        repairs=tuple(repair for item in decoded for repair in item.repairs),
        calls=len(outcomes),
    )


def _decode_call(call: object, index: int, toolset: Toolset) -> _Decoded | ParseFailure:
    envelope = open_envelope(call)
    outcome = _read_arguments(envelope.arguments)
    arguments, repairs = ({}, ()) if isinstance(outcome, _CallError) else outcome
    try:
        tool = _find_tool(envelope, toolset)
        if isinstance(outcome, _CallError):
            raise outcome
        return _CallReading(tool, envelope, index).decode(arguments, repairs)
    except _CallError as error:
        call_path = dotted(("tool_calls", index, *error.place))
        holder = IN_ARGUMENTS if error.is_inside else ()
        return ParseFailure(
            tool_name=envelope.tool_name,
            tool_call_id=envelope.tool_call_id,
            path=(dotted(error.place) or "arguments") if error.is_inside else call_path,
            code=error.code,
            message=error.message,
            raw_arguments=written_arguments(envelope.arguments),
            entries=count_entries(arguments, toolset),
            call=index,
            pointer=pointer(index, (*holder, *error.place)),
            line=error.line,
            column=error.column,
        )


def _find_tool(envelope: Envelope, toolset: Toolset) -> ActionTool:
    if envelope.fault is not None:
        path, message = envelope.fault
        raise _CallError(path, "bad_envelope", message, is_inside=False)
    name = envelope.tool_name or ""
    tool = toolset.find(name)
    if tool is not None:
        return tool
    near = difflib.get_close_matches(name, [tool.name for tool in toolset.tools], n=1)
    hint = f"; the nearest is {near[0]}" if near else ""
    message = f"the toolset {toolset.name} has no tool of this name{hint}"
    raise _CallError(("function", "name"), "unknown_tool", message, is_inside=False)


def count_entries(arguments: Mapping[str, Any], toolset: Toolset) -> int:
    """Return the number of entries in arguments; 1 when they have no list of entries."""
    lists = (arguments.get(key) for key in toolset.list_keys)
    return next((len(entries) for entries in lists if isinstance(entries, list)), 1)


@dataclass(frozen=True, slots=True)
class _CallReading:
    tool: ActionTool
    envelope: Envelope
    index: int

    def decode(self, arguments: Mapping[str, Any], repairs: tuple[Repair, ...]) -> _Decoded:
        key = self.tool.list_key
        entries = arguments.get(key)
        if not isinstance(entries, list):
            message = f"expected a list of entries, got {kind_of(entries)}"
            raise _CallError((key,), "list_type", message)
        if not entries:
            raise _CallError((key,), "empty_list", "expected at least one entry")
        coerced = [*self._unknown_keys(arguments, {key}, ())]
        actions = []
        for number, entry in enumerate(entries):
            actions.append(self._action(entry, (key, number), coerced))
        return _Decoded(tuple(actions), tuple(coerced), repairs)

    def _action(self, entry: object, place: Place, coerced: list[Leniency]) -> Action:
        holders = self._holders(entry, place)
        fields: dict[str, Any] = {}
        for field in self.tool.fields:
            at = (*place, *([field.under] if field.under else []), field.name)
            outcome = field.policy.read(holders[field.under].get(field.name))
            if isinstance(outcome, RefusedValue):
                raise _CallError(at, outcome.code, outcome.message)
            fields[field.name] = outcome.value
            coerced += [self._leniency(at, kind) for kind in outcome.leniencies]
        for group, holder in holders.items():
            holder_place = place if group is None else (*place, group)
            coerced += self._unknown_keys(holder, self._known(group), holder_place)
        names = self.tool.name, self.envelope.tool_call_id
        return Action(self.tool.type, fields, *names, dotted(place), self.index)

    def _holders(self, entry: object, place: Place) -> dict[str | None, Mapping[str, Any]]:
        if not isinstance(entry, dict):
            message = f"expected an object, got {kind_of(entry)}"
            raise _CallError(place, "object_type", message)
        holders: dict[str | None, Mapping[str, Any]] = {None: entry}
        for group in self.tool.groups:
            inner = entry.get(group)
            if not isinstance(inner, dict):
                message = f"expected an object, got {kind_of(inner)}"
                raise _CallError((*place, group), "object_type", message)
            holders[group] = inner
        return holders

    def _known(self, group: str | None) -> set[str]:
        inner = self.tool.groups if group is None else ()
        return {f.name for f in self.tool.fields if f.under == group} | set(inner)

    def _unknown_keys(
        self, holder: Mapping[str, Any], known_keys: set[str], place: Place
    ) -> Iterator[Leniency]:
        for key in holder:
            if key not in known_keys:
                yield self._leniency((*place, key), UNKNOWN_KEY)

    def _leniency(self, place: Place, kind: str) -> Leniency:
        return Leniency(
            path=dotted(place),
            kind=kind,
            tool_name=self.tool.name,
            tool_call_id=self.envelope.tool_call_id,
            pointer=pointer(self.index, (*IN_ARGUMENTS, *place)),
        )

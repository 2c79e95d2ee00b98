"""From tool calls to actions, each call in isolation.

1. Open the envelope, find the tool, read the arguments, read every entry by its fields' policies.
2. A call that fails anywhere fails whole, with all its entries, and stops no other call.
3. Every leniency towards a call that stands is recorded with its place.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from failsoft.actions.envelopes import BadEnvelope, Envelope, open_envelope
from failsoft.actions.policies import RefusedValue, kind_of
from failsoft.actions.results import Action, Leniency, ParseFailure, ParseResult
from failsoft.actions.toolsets import ActionTool, Toolset
from failsoft.events import Repair
from failsoft.json_values import clean_text, pointer_of
from failsoft.parsing import RefusedAnswer, recover


@dataclass(frozen=True, slots=True)
class DecodedArguments:
    """Arguments that were read, and what the parser had to put right."""

    value: dict[str, Any]
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why arguments could not be read; line and column are places in their text."""

    code: str
    message: str
    line: int | None = None
    column: int | None = None


def read_arguments(given: object) -> DecodedArguments | Unreadable:
    """Read an object, or the one object a text holds; never raises, for anything."""
    if isinstance(given, dict):
        return DecodedArguments(given)
    if not isinstance(given, str):
        return Unreadable(
            "arguments_type",
            f"expected the arguments as text or as an object, got {kind_of(given)}",
        )
    if not given.strip():
        return Unreadable("empty_output", "the arguments are empty", 1, 1)
    read = recover(given)
    if isinstance(read, RefusedAnswer):
        return Unreadable(
            read.error_type.value,
            f"the arguments cannot be read: expected {read.expected}",
            read.line,
            read.column,
        )
    if not isinstance(read.value, dict):
        return Unreadable("object_type", "expected the arguments as one object")
    return DecodedArguments(read.value, read.repairs)


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


Place = tuple[str | int, ...]
MAX_KEY_CHARACTERS = 100
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def dotted(place: Sequence[str | int]) -> str:
    """Write a place as people do, `entries[0].category`."""
    written = ""
    for part in place:
        if isinstance(part, int) or not _PLAIN_KEY.fullmatch(part):
            written += f"[{part if isinstance(part, int) else repr(_cut(part))}]"
        else:
            written += f".{_cut(part)}" if written else _cut(part)
    return written


def pointer(call: int, place: Sequence[str | int]) -> str:
    """Write a place of the numbered call as a JSON pointer into the list of tool calls."""
    return pointer_of((call, *(_cut(part) if isinstance(part, str) else part for part in place)))


def _cut(key: str) -> str:
    # Keys are the model's: what no column can keep does not leave here.
    return clean_text(key[:MAX_KEY_CHARACTERS])


IN_ARGUMENTS: Place = ("function", "arguments")
UNKNOWN_KEY = "unknown_key_dropped"


def decode_tool_calls(calls: object, toolset: Toolset) -> ParseResult:
    """Decode every call of an answer; never raises, whatever a model made of them."""
    if calls is None:
        return ParseResult()
    if not isinstance(calls, Sequence) or isinstance(calls, str | bytes):
        return ParseResult(failures=(_not_a_list(calls),), calls=1)
    read = [_decode_call(call, index, toolset) for index, call in enumerate(calls)]
    good = [item for item in read if isinstance(item, _Decoded)]
    return ParseResult(
        actions=tuple(action for item in good for action in item.actions),
        failures=tuple(item for item in read if isinstance(item, ParseFailure)),
        coerced=tuple(leniency for item in good for leniency in item.coerced),
        repairs=tuple(repair for item in good for repair in item.repairs),
        calls=len(read),
    )


@dataclass(frozen=True, slots=True)
class _Decoded:
    actions: tuple[Action, ...]
    coerced: tuple[Leniency, ...]
    repairs: tuple[Repair, ...]


class _CallError(Exception):
    """the call fails; where in its arguments, and why"""

    def __init__(self, place: Place, code: str, message: str) -> None:
        super().__init__(message)
        self.place, self.code, self.message = place, code, message


def _decode_call(call: object, index: int, toolset: Toolset) -> _Decoded | ParseFailure:
    envelope = open_envelope(call)
    if isinstance(envelope, BadEnvelope):
        return _bad_envelope(envelope, index, toolset)
    read = read_arguments(envelope.arguments)
    tool = toolset.find(envelope.tool_name)
    if tool is None:
        held = {} if isinstance(read, Unreadable) else read.value
        return _unknown_tool(envelope, index, toolset, held)
    if isinstance(read, Unreadable):
        return _unreadable(envelope, index, read)
    try:
        return _CallReading(tool, envelope, index).decode(read.value, read.repairs)
    except _CallError as error:
        return _failure(envelope, index, error, count_entries(read.value, toolset))


def count_entries(arguments: Mapping[str, Any], toolset: Toolset) -> int:
    """How many entries readable arguments hold; 1 when they hold no list of them."""
    lists = (arguments.get(key) for key in toolset.list_keys)
    return next((len(held) for held in lists if isinstance(held, list)), 1)


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
            taken = field.policy.read(holders[field.under].get(field.name))
            if isinstance(taken, RefusedValue):
                raise _CallError(at, taken.code, taken.message)
            fields[field.name] = taken.value
            coerced += [self._leniency(at, kind) for kind in taken.leniencies]
        for group, holder in holders.items():
            inside = place if group is None else (*place, group)
            coerced += self._unknown_keys(holder, self._known(group), inside)
        names = self.envelope.tool_name, self.envelope.tool_call_id
        return Action(self.tool.type, fields, *names, dotted(place), self.index)

    def _holders(self, entry: object, place: Place) -> dict[str | None, Mapping[str, Any]]:
        """The entry, and each object in it that holds fields."""
        if not isinstance(entry, dict):
            message = f"expected an object, got {kind_of(entry)}"
            raise _CallError(place, "object_type", message)
        holders: dict[str | None, Mapping[str, Any]] = {None: entry}
        for group in self.tool.groups:
            held = entry.get(group)
            if not isinstance(held, dict):
                message = f"expected an object, got {kind_of(held)}"
                raise _CallError((*place, group), "object_type", message)
            holders[group] = held
        return holders

    def _known(self, group: str | None) -> set[str]:
        inner = self.tool.groups if group is None else ()
        return {f.name for f in self.tool.fields if f.under == group} | set(inner)

    def _unknown_keys(
        self, holder: Mapping[str, Any], known: set[str], place: Place
    ) -> Iterator[Leniency]:
        """Name what is left aside."""
        for key in holder:
            if key not in known:
                yield self._leniency((*place, key), UNKNOWN_KEY)

    def _leniency(self, place: Place, kind: str) -> Leniency:
        return Leniency(
            path=dotted(place),
            kind=kind,
            tool_name=self.envelope.tool_name,
            tool_call_id=self.envelope.tool_call_id,
            pointer=pointer(self.index, (*IN_ARGUMENTS, *place)),
        )


def _failure(envelope: Envelope, index: int, error: _CallError, entries: int) -> ParseFailure:
    return ParseFailure(
        tool_name=envelope.tool_name,
        tool_call_id=envelope.tool_call_id,
        path=dotted(error.place),
        code=error.code,
        message=error.message,
        raw_arguments=written_arguments(envelope.arguments),
        entries=entries,
        call=index,
        pointer=pointer(index, (*IN_ARGUMENTS, *error.place)),
    )


def _unknown_tool(
    envelope: Envelope, index: int, toolset: Toolset, held: Mapping[str, Any]
) -> ParseFailure:
    names = [tool.name for tool in toolset.tools]
    near = difflib.get_close_matches(envelope.tool_name, names, n=1)
    hint = f"; the nearest is {near[0]}" if near else ""
    return ParseFailure(
        tool_name=envelope.tool_name,
        tool_call_id=envelope.tool_call_id,
        path=dotted(("tool_calls", index, "function", "name")),
        code="unknown_tool",
        message=f"the toolset {toolset.name} has no tool of this name{hint}",
        raw_arguments=written_arguments(envelope.arguments),
        entries=count_entries(held, toolset),
        call=index,
        pointer=pointer(index, ("function", "name")),
    )


def _unreadable(envelope: Envelope, index: int, read: Unreadable) -> ParseFailure:
    return ParseFailure(
        tool_name=envelope.tool_name,
        tool_call_id=envelope.tool_call_id,
        path="arguments",
        code=read.code,
        message=read.message,
        raw_arguments=written_arguments(envelope.arguments),
        call=index,
        pointer=pointer(index, IN_ARGUMENTS),
        line=read.line,
        column=read.column,
    )


def _bad_envelope(envelope: BadEnvelope, index: int, toolset: Toolset) -> ParseFailure:
    read = read_arguments(envelope.arguments)
    held = {} if isinstance(read, Unreadable) else read.value
    return ParseFailure(
        tool_name=envelope.tool_name,
        tool_call_id=envelope.tool_call_id,
        path=dotted(("tool_calls", index, *envelope.path)),
        code="bad_envelope",
        message=envelope.message,
        raw_arguments=written_arguments(envelope.arguments),
        entries=count_entries(held, toolset),
        call=index,
        pointer=pointer(index, envelope.path),
    )


def _not_a_list(calls: object) -> ParseFailure:
    return ParseFailure(
        tool_name=None,
        tool_call_id=None,
        path="tool_calls",
        code="bad_envelope",
        message=f"expected a list of tool calls, got {kind_of(calls)}",
        raw_arguments=written_arguments(calls),
    )

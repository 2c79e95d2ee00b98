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
from typing import Any, NamedTuple

from failsoft.actions.envelopes import Envelope, open_envelope
from failsoft.actions.policies import RefusedValue, kind_of
from failsoft.actions.results import Action, Leniency, ParseFailure, ParseResult
from failsoft.actions.toolsets import ActionTool, Toolset
from failsoft.events import Repair
from failsoft.json_values import clean_text, pointer_of
from failsoft.parsing import RefusedAnswer, recover
from failsoft.parsing.leniency import UNKNOWN_KEY

Place = tuple[str | int, ...]
IN_ARGUMENTS: Place = ("function", "arguments")
MAX_KEY_CHARACTERS = 100
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _CallError(Exception):
    """the call fails; where in its arguments, or in itself, and why"""

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
        # Places in the text of the arguments.
        self.line, self.column = line, column


class _Decoded(NamedTuple):
    actions: tuple[Action, ...] = ()
    coerced: tuple[Leniency, ...] = ()
    repairs: tuple[Repair, ...] = ()


def _read_arguments(given: object) -> _CallError | tuple[dict[str, Any], tuple[Repair, ...]]:
    """Read an object, or the one object a text holds, and what the parser had to put right."""
    if isinstance(given, dict):
        return given, ()
    if not isinstance(given, str):
        message = f"expected the arguments as text or as an object, got {kind_of(given)}"
        return _CallError((), "arguments_type", message)
    if not given.strip():
        return _CallError((), "empty_output", "the arguments are empty", line=1, column=1)
    read = recover(given)
    if isinstance(read, RefusedAnswer):
        message = f"the arguments cannot be read: expected {read.expected}"
        return _CallError((), read.error_type.value, message, line=read.line, column=read.column)
    if not isinstance(read.value, dict):
        return _CallError((), "object_type", "expected the arguments as one object")
    return read.value, read.repairs


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


def _decode_call(call: object, index: int, toolset: Toolset) -> _Decoded | ParseFailure:
    envelope = open_envelope(call)
    read = _read_arguments(envelope.arguments)
    arguments, repairs = ({}, ()) if isinstance(read, _CallError) else read
    try:
        tool = _find_tool(envelope, toolset)
        if isinstance(read, _CallError):
            raise read
        return _CallReading(tool, envelope, index).decode(arguments, repairs)
    except _CallError as error:
        outside = dotted(("tool_calls", index, *error.place))
        holder = IN_ARGUMENTS if error.is_inside else ()
        return ParseFailure(
            tool_name=envelope.tool_name,
            tool_call_id=envelope.tool_call_id,
            path=(dotted(error.place) or "arguments") if error.is_inside else outside,
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
        names = self.tool.name, self.envelope.tool_call_id
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
            tool_name=self.tool.name,
            tool_call_id=self.envelope.tool_call_id,
            pointer=pointer(self.index, (*IN_ARGUMENTS, *place)),
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

"""The results of decoding tool calls, as counts, summaries and tool messages."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

from failsoft.actions.toolsets import Toolset
from failsoft.events import Repair


@dataclass(frozen=True, slots=True)
class Action:
    """One entry of a valid call, ready to be applied."""

    type: str
    fields: dict[str, Any]
    tool_name: str
    tool_call_id: str | None
    # The path of the entry in the arguments: `entries[0]`.
    path: str
    call: int = 0

    def flat(self) -> dict[str, Any]:
        return {"type": self.type, **self.fields}


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """A call that could not be decoded, with all its entries.

    `raw_arguments` is the full text of the model: redact, then truncate it before storing it.
    `message` has no model output. `entries` is the number of entries, 1 if unreadable.
    """

    tool_name: str | None
    tool_call_id: str | None
    path: str
    code: str
    message: str
    raw_arguments: str = ""
    entries: int = 1
    call: int = 0
    pointer: str = ""
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Leniency:
    path: str
    kind: str
    tool_name: str
    tool_call_id: str | None
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class ParseResult:
    """The decoded tool calls of one answer; simple callers only need `actions`."""

    actions: tuple[Action, ...] = ()
    failures: tuple[ParseFailure, ...] = ()
    coerced: tuple[Leniency, ...] = ()
    repairs: tuple[Repair, ...] = ()
    calls: int = 0

    @property
    def failed_entries(self) -> int:
        return sum(failure.entries for failure in self.failures)

    @property
    def unknown_tools(self) -> list[str]:
        names = {
            failure.tool_name
            for failure in self.failures
            if failure.code == "unknown_tool" and failure.tool_name
        }
        return sorted(names)

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = _RESULTS.dump_python(self, mode="json")
        return value

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "ParseResult":
        return _RESULTS.validate_python(value)


_RESULTS: TypeAdapter[ParseResult] = TypeAdapter(ParseResult)
NOTHING = "Nothing was changed"
ALL_FAILED = (
    "The request couldn't be processed because of an internal error; nothing was changed. "
    "Diagnostics were recorded for the administrator."
)
# Reasons of a goal that ended without an applied action.
ACTIONS_FAILED = "actions_failed"
NO_ACTIONS = "actions_parse_failed"


def summarise(applied: Sequence[str], failed: int, toolset: Toolset) -> str:
    """Return a sentence with the applied actions by type and the number of failed entries.

    >>> summarise(["create", "complete"], 2, ENTRIES)
    "Created 1, completed 1 (2 couldn't be processed)"
    """
    counts = [
        f"{tool.past} {applied.count(tool.type)}" for tool in toolset.tools if tool.type in applied
    ]
    summary = ", ".join(counts) or NOTHING
    note = f" ({failed} couldn't be processed)" if failed else ""
    return f"{summary[0].upper()}{summary[1:]}{note}"


_NOT_SHOWN = ("raw_arguments", "call", "pointer")


def without_model_text(item: ParseFailure | Leniency) -> dict[str, Any]:
    return {key: value for key, value in asdict(item).items() if key not in _NOT_SHOWN}


MAX_REASONS = 5


@dataclass(frozen=True, slots=True)
class ExecutionFailure:
    """A decoded action that could not be applied; the message has no model output."""

    action: Action
    code: str
    message: str


def tool_messages(
    result: ParseResult, failures: Sequence[ExecutionFailure]
) -> list[dict[str, str]]:
    """Return a tool message for each call with an id: accepted, failed or partially failed."""
    messages = {}
    for failure in result.failures:
        place = f"{failure.path}: " if failure.path else ""
        message = f"{failure.tool_name or 'tool call'} failed: {place}{failure.message}"
        messages[failure.call] = failure.tool_call_id, message
    for action in result.actions:
        if action.call not in messages:
            message = _describe_call(action, result, failures)
            messages[action.call] = action.tool_call_id, message
    return [
        {"role": "tool", "tool_call_id": identity, "content": content}
        for _, (identity, content) in sorted(messages.items())
        if identity is not None
    ]


def _describe_call(
    action: Action, result: ParseResult, failures: Sequence[ExecutionFailure]
) -> str:
    call_failures = [item for item in failures if item.action.call == action.call]
    if not call_failures:
        return f"{action.tool_name} accepted."
    action_count = sum(item.call == action.call for item in result.actions)
    verdict = "failed" if len(call_failures) == action_count else "partially failed"
    reasons = "; ".join(item.message for item in call_failures[:MAX_REASONS])
    more = (
        f"; and {len(call_failures) - MAX_REASONS} more" if len(call_failures) > MAX_REASONS else ""
    )
    return f"{action.tool_name} {verdict}: {reasons}{more}"

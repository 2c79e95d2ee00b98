"""What decoding tool calls yields, as counts, summaries and tool messages."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from failsoft.actions.toolsets import Toolset
from failsoft.events import Repair


@dataclass(frozen=True, slots=True)
class Action:
    """One entry of a good call, ready to be applied."""

    type: str
    fields: dict[str, Any]
    tool_name: str
    tool_call_id: str | None
    # Where the entry stands in the arguments: `entries[0]`.
    path: str
    call: int = 0

    def flat(self) -> dict[str, Any]:
        """The action as one flat object, its type first."""
        return {"type": self.type, **self.fields}


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """A call that could not be decoded, with all its entries.

    `raw_arguments` is the model's own text, whole: redact it, then cut it, before it is kept.
    `message` is ours. `entries` is how many entries the call had, 1 if it could not be read.
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
    """A value that was taken leniently."""

    path: str
    kind: str
    tool_name: str
    tool_call_id: str | None
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class ParseResult:
    """What came of one answer's tool calls; callers without worries read `actions`."""

    actions: tuple[Action, ...] = ()
    failures: tuple[ParseFailure, ...] = ()
    coerced: tuple[Leniency, ...] = ()
    repairs: tuple[Repair, ...] = field(default=())
    calls: int = 0

    @property
    def failed_entries(self) -> int:
        """How many entries the failed calls had."""
        return sum(failure.entries for failure in self.failures)

    @property
    def unknown_tools(self) -> list[str]:
        """The names of tools that the toolset does not have."""
        names = {
            failure.tool_name
            for failure in self.failures
            if failure.code == "unknown_tool" and failure.tool_name
        }
        return sorted(names)

    def to_json(self) -> dict[str, Any]:
        """The result as JSON, to be taken up by another process."""
        return {
            "actions": [asdict(item) for item in self.actions],
            "failures": [asdict(item) for item in self.failures],
            "coerced": [asdict(item) for item in self.coerced],
            "repairs": [item.model_dump() for item in self.repairs],
            "calls": self.calls,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """The result that `to_json` wrote."""
        return cls(
            actions=tuple(Action(**item) for item in value["actions"]),
            failures=tuple(ParseFailure(**item) for item in value["failures"]),
            coerced=tuple(Leniency(**item) for item in value["coerced"]),
            repairs=tuple(Repair(**item) for item in value["repairs"]),
            calls=value["calls"],
        )


NOTHING = "Nothing was changed"
ALL_FAILED = (
    "The request couldn't be processed because of an internal error; nothing was changed. "
    "Diagnostics were recorded for the administrator."
)
# Reasons of a goal that ended without an applied action: nothing was decoded, nothing applied.
ACTIONS_FAILED = "actions_failed"
NO_ACTIONS = "actions_parse_failed"


def summarise(applied: Sequence[str], failed: int, toolset: Toolset) -> str:
    """Count what was applied by type, and how many entries failed in either layer.

    >>> summarise(["create", "complete"], 2, ENTRIES)
    "Created 1, completed 1 (2 couldn't be processed)"
    """
    counts = [
        f"{tool.past} {applied.count(tool.type)}" for tool in toolset.tools if tool.type in applied
    ]
    told = ", ".join(counts) or NOTHING
    note = f" ({failed} couldn't be processed)" if failed else ""
    return f"{told[0].upper()}{told[1:]}{note}"


MAX_TOLD = 5


@dataclass(frozen=True, slots=True)
class ExecutionFailure:
    """An action that was decoded and could not be applied; the message is ours."""

    action: Action
    code: str
    message: str


def tool_messages(
    result: ParseResult, failures: Sequence[ExecutionFailure]
) -> list[dict[str, str]]:
    """Answer every call that has an id: accepted, failed, or failed in part and why."""
    told = {item.call: (item.tool_call_id, _tell_unparsed(item)) for item in result.failures}
    for action in result.actions:
        if action.call not in told:
            said = _tell(action, result, failures)
            told[action.call] = action.tool_call_id, said
    return [
        {"role": "tool", "tool_call_id": identity, "content": content}
        for _, (identity, content) in sorted(told.items())
        if identity is not None
    ]


def _tell_unparsed(failure: ParseFailure) -> str:
    place = f"{failure.path}: " if failure.path else ""
    return f"{failure.tool_name or 'tool call'} failed: {place}{failure.message}"


def _tell(action: Action, result: ParseResult, failures: Sequence[ExecutionFailure]) -> str:
    mine = [item for item in failures if item.action.call == action.call]
    if not mine:
        return f"{action.tool_name} accepted."
    received = sum(item.call == action.call for item in result.actions)
    verdict = "failed" if len(mine) == received else "partially failed"
    reasons = "; ".join(item.message for item in mine[:MAX_TOLD])
    more = f"; and {len(mine) - MAX_TOLD} more" if len(mine) > MAX_TOLD else ""
    return f"{action.tool_name} {verdict}: {reasons}{more}"

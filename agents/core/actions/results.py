"""What decoding tool calls gives: each call and each entry counted once (S4-45)."""

from dataclasses import asdict, dataclass, field
from typing import Any, Self

from diagnostics.core.events import Repair


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
    """A call that could not be decoded, with all its entries (S4-3 to S4-5).

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
    """A value that was taken leniently (X-12)."""

    path: str
    kind: str
    tool_name: str
    tool_call_id: str | None
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class ParseResult:
    """What came of one answer's tool calls; callers without worries read `actions` (S4-7)."""

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
    def received_entries(self) -> int:
        """How many entries the model sent; applied and failed ones add up to it (S4-45)."""
        return len(self.actions) + self.failed_entries

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

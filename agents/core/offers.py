"""What a planner is told about the tools it may use."""

from dataclasses import dataclass, field
from typing import Any

_PLAIN_TYPES = frozenset({"string", "integer", "number", "boolean"})


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool as a planner sees it: `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, Any]:
        """The named arguments, empty for a tool that takes anything."""
        return dict(self.parameters.get("properties", {}))

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments that must be given."""
        return tuple(self.parameters.get("required", ()))

    @property
    def is_basic(self) -> bool:
        """Whether every argument is plain: what a simplified prompt falls back to (S1-39)."""
        return all(schema.get("type") in _PLAIN_TYPES for schema in self.properties.values())

    @property
    def needs_address(self) -> bool:
        """Whether it fetches something by address, which a planner without one would invent."""
        return "url" in self.properties

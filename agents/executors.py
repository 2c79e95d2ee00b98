"""What carries out the actions of a toolset: the seam between decoding and rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from agents.core.actions.results import Action


class ActionError(Exception):
    """an action cannot be applied; the message is ours and is shown to administrators"""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done: `shown` is redacted and kept, `undo` lies in the working store (X-17)."""

    shown: dict[str, Any]
    undo: dict[str, Any]


class Executor(Protocol):
    """Applies actions of one toolset, each inside a savepoint of its own."""

    def apply(self, project_id: int, action: Action, now: datetime) -> Applied:
        """Apply one action; ActionError when it cannot be."""
        ...

    def undo(self, project_id: int, record: Mapping[str, Any]) -> bool:
        """Take one action back; False when what it did has been changed since."""
        ...

    def describe(self, project_id: int) -> list[str]:
        """Tell a planner, a line each, what there is to act upon."""
        ...

"""What a goal's page shows of its actions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.core.actions.catalogue import TOOLSETS
from agents.models import ActionBatch, Goal

SHORT = 8
# Shown apart from the other fields of an action.
APART = frozenset({"type", "id", "entry_id", "content"})


@dataclass(frozen=True, slots=True)
class AppliedRow:
    """One action that was applied."""

    past: str
    entry: str
    content: str | None
    fields: list[tuple[str, Any]]
    was_kept: bool


@dataclass(frozen=True, slots=True)
class ActionsCard:
    """A batch of actions; `can_undo` while there is something to take back."""

    batch: ActionBatch
    applied: list[AppliedRow]
    can_undo: bool

    @property
    def was_planned(self) -> bool:
        """Whether the planner's answer held actions, applied or not."""
        return bool(self.applied or self.batch.execution_failed)

    @property
    def is_partial(self) -> bool:
        """Whether something failed, in either layer."""
        return bool(self.batch.parse_failed or self.batch.execution_failed)

    @property
    def told(self) -> str:
        """The summary as the end of a sentence."""
        summary = self.batch.summary
        return f"{summary[:1].lower()}{summary[1:]}"


def actions_of(goal: Goal) -> ActionsCard | None:
    """The actions of a goal; None for another mode, and before they are applied."""
    if goal.mode != Goal.Mode.ACTIONS:
        return None
    batch = ActionBatch.objects.filter(goal=goal).first()
    if batch is None:
        return None
    past = {tool.type: tool.past for tool in TOOLSETS[batch.toolset].tools}
    rows = [_row(action, past, batch) for action in batch.applied]
    return ActionsCard(batch, rows, bool(rows) and batch.undone_at is None)


def _row(action: Mapping[str, Any], past: Mapping[str, str], batch: ActionBatch) -> AppliedRow:
    return AppliedRow(
        past=past.get(action["type"], action["type"]),
        entry=action["entry_id"][:SHORT],
        content=action.get("content"),
        fields=[
            (name.replace("_", " "), value)
            for name, value in action.items()
            if name not in APART and value is not None
        ],
        was_kept=action["entry_id"] in batch.kept,
    )

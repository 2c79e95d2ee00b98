"""The completion decisions of a goal as its page shows them (s3)."""

from dataclasses import dataclass
from datetime import timedelta

from agents.core.badges import Badge
from agents.models import Goal
from agents.policies import owner_of
from plans.check_rows import checks_of
from plans.models import CompletionCheck

MOST_SHOWN = 50
BADGES: dict[str, Badge] = {
    "complete": ("good", "complete"),
    "incomplete": ("warn", "incomplete"),
    "undecidable": ("bad", "undecidable"),
    "failed": ("bad", "checker failed"),
    "running": ("live", "checking"),
    "interrupted": ("quiet", "interrupted"),
}


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One check with its badge."""

    check: CompletionCheck
    badge: Badge
    took: timedelta | None


def decision_rows(goal: Goal) -> list[DecisionRow]:
    """The checks of a goal, newest first; none for a goal without a check."""
    if goal.completion_check is None:
        return []
    newest = checks_of(goal.project_id, owner_of(goal)).order_by("-pk")[:MOST_SHOWN]
    return [_row(check) for check in newest]


def _row(check: CompletionCheck) -> DecisionRow:
    took = check.ended_at - check.started_at if check.ended_at else None
    return DecisionRow(check, BADGES[check.decision or check.state], took)

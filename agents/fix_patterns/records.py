"""Fix patterns as hints and as rows of lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from agents.fix_patterns.models import FixPattern, FixPolicy
from agents.fix_patterns.status import (
    DEMO,
    PatternMode,
    PatternPolicy,
    PatternStatus,
    choose_hints,
    is_withheld,
    status_of,
)
from agents.goals.models import Goal
from diagnostics import clock
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.prompts import Hint


@dataclass(frozen=True, slots=True)
class Hints:
    """The hints of a first prompt, and the patterns that are withheld from it."""

    chosen: tuple[Hint, ...] = ()
    withheld: tuple[int, ...] = ()


def policy_of(project_id: int) -> PatternPolicy:
    modes = FixPolicy.objects.filter(project_id=project_id).values_list("mode")
    (mode,) = modes.first() or (FixPolicy.Mode.AUTO,)
    return PatternPolicy(
        PatternMode(mode),
        timedelta(days=settings.FAILSOFT_FIX_PATTERN_EXPIRY_DAYS),
        settings.FAILSOFT_FIX_PATTERN_WITHHELD_PERCENT,
    )


def hints_for(goal: Goal, schema: PlannerSchema) -> Hints:
    """Return the hints for the first prompt of a goal's cycle."""
    patterns = FixPattern.objects.filter(project_id=goal.project_id, schema=schema)
    rows = list(patterns.exclude(decided_by=DEMO))
    if not rows:
        return Hints()
    policy = policy_of(goal.project_id)
    hints = choose_hints(rows, policy, clock.now())
    if is_withheld(goal.correlation_id, policy):
        return Hints(withheld=tuple(hint.pattern_id for hint in hints))
    return Hints(hints)


ORDER = tuple(
    PatternStatus(name) for name in ("waiting", "active", "learning", "expired", "rejected")
)


def known_patterns(project_id: int, policy: PatternPolicy) -> Sequence[FixPattern]:
    """Return a project's patterns with their status: waiting ones first, then by successes."""
    rows = FixPattern.objects.filter(project_id=project_id)
    patterns = [known_pattern(row, policy, clock.now()) for row in rows]
    return sorted(patterns, key=lambda row: (ORDER.index(row.standing), -row.successes, row.pk))


def known_pattern(row: FixPattern, policy: PatternPolicy, now: datetime) -> FixPattern:
    row.standing = status_of(row, policy, now)
    row.expires_at = row.last_success_at + policy.expiry
    return row

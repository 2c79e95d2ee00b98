"""Fix patterns as they are told and shown."""

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
    standing_of,
)
from agents.goals.models import Goal
from diagnostics import clock
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.prompts import Hint


@dataclass(frozen=True, slots=True)
class Hints:
    """What a ladder's first prompt is told, and the patterns that are withheld from it."""

    told: tuple[Hint, ...] = ()
    withheld: tuple[int, ...] = ()


def rules_of(project_id: int) -> PatternPolicy:
    """The project's policy."""
    chosen = FixPolicy.objects.filter(project_id=project_id).values_list("mode")
    (mode,) = chosen.first() or (FixPolicy.Mode.AUTO,)
    return PatternPolicy(
        PatternMode(mode),
        timedelta(days=settings.FAILSOFT_FIX_PATTERN_EXPIRY_DAYS),
        settings.FAILSOFT_FIX_PATTERN_WITHHELD_PERCENT,
    )


def hints_for(goal: Goal, schema: PlannerSchema) -> Hints:
    """The hints for a goal's next ladder."""
    known = FixPattern.objects.filter(project_id=goal.project_id, schema=schema)
    rows = list(known.exclude(decided_by=DEMO))
    if not rows:
        return Hints()
    rules = rules_of(goal.project_id)
    chosen = choose_hints(rows, rules, clock.now())
    if is_withheld(goal.correlation_id, rules):
        return Hints(withheld=tuple(hint.pattern_id for hint in chosen))
    return Hints(chosen)


ORDER = tuple(
    PatternStatus(name) for name in ("waiting", "active", "learning", "expired", "rejected")
)


def known_patterns(project_id: int, rules: PatternPolicy) -> Sequence[FixPattern]:
    """Every pattern of a project as it stands: what waits for somebody first, then by successes."""
    rows = FixPattern.objects.filter(project_id=project_id)
    found = [known_pattern(row, rules, clock.now()) for row in rows]
    return sorted(found, key=lambda row: (ORDER.index(row.standing), -row.successes, row.pk))


def known_pattern(row: FixPattern, rules: PatternPolicy, now: datetime) -> FixPattern:
    """One pattern as it stands at a time."""
    row.standing = standing_of(row, rules, now)
    row.expires_at = row.last_success_at + rules.expiry
    return row

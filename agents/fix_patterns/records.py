"""Fix patterns as they are told and shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from agents.fix_patterns import (
    FixChange,
    FixRule,
    Hint,
    Mode,
    PatternCounts,
    PatternPolicy,
    PatternStatus,
    ValueShape,
    choose_hints,
    describe,
    is_withheld,
    standing_of,
)
from agents.fix_patterns.models import FixPattern, FixPolicy
from agents.fix_patterns.status import NEEDED_SUCCESSES
from agents.goals.models import Goal
from diagnostics import clock
from diagnostics.analysis.statistics import wilson_interval
from failsoft.events import ParseErrorType
from failsoft.retry.answers import PlannerSchema


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
        Mode(mode),
        timedelta(days=settings.FAILSOFT_FIX_PATTERN_EXPIRY_DAYS),
        settings.FAILSOFT_FIX_PATTERN_WITHHELD_PERCENT,
    )


def hints_for(goal: Goal, schema: PlannerSchema) -> Hints:
    """The hints for a goal's next ladder."""
    rows = list(FixPattern.objects.filter(project_id=goal.project_id, schema=schema))
    if not rows:
        return Hints()
    rules = rules_of(goal.project_id)
    chosen = choose_hints(map(record_of, rows), rules, clock.now())
    if is_withheld(goal.correlation_id, rules):
        return Hints(withheld=tuple(hint.pattern_id for hint in chosen))
    return Hints(chosen)


def record_of(row: FixPattern) -> PatternCounts:
    """A row in the terms of the rules."""
    pattern = FixRule(
        PlannerSchema(row.schema),
        ParseErrorType(row.error_class),
        row.code,
        row.pointer,
        FixChange(row.change),
        ValueShape(row.before),
        ValueShape(row.after),
    )
    return PatternCounts(
        row.pk,
        pattern,
        row.successes,
        row.last_success_at,
        row.decision,
        row.expired_at,
    )


@dataclass(frozen=True, slots=True)
class FirstPassShare:
    """First answers that were good, of so many, with the 95 % interval; no share without runs."""

    good: int
    runs: int

    @property
    def rate(self) -> float | None:
        """The share itself."""
        return self.good / self.runs if self.runs else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's interval, low and high."""
        return wilson_interval(self.good, self.runs) if self.runs else None


@dataclass(frozen=True, slots=True)
class KnownPattern:
    """A pattern as people see it."""

    row: FixPattern
    says: str
    standing: PatternStatus
    told: FirstPassShare
    withheld: FirstPassShare
    expires_at: datetime
    needed: int = NEEDED_SUCCESSES


ORDER = tuple(
    PatternStatus(name) for name in ("waiting", "active", "learning", "expired", "rejected")
)


def known_patterns(project_id: int, rules: PatternPolicy) -> Sequence[KnownPattern]:
    """Every pattern of a project: what waits for somebody first, then by successes."""
    now = clock.now()
    rows = FixPattern.objects.filter(project_id=project_id)
    found = [_known(row, rules, now) for row in rows]
    return sorted(
        found,
        key=lambda item: (ORDER.index(item.standing), -item.row.successes, item.row.pk),
    )


def known_pattern(row: FixPattern, rules: PatternPolicy) -> KnownPattern:
    """One pattern as it stands now."""
    return _known(row, rules, clock.now())


def _known(row: FixPattern, rules: PatternPolicy, now: datetime) -> KnownPattern:
    record = record_of(row)
    return KnownPattern(
        row,
        describe(record.pattern),
        standing_of(record, rules, now),
        FirstPassShare(row.told_good, row.told_runs),
        FirstPassShare(row.withheld_good, row.withheld_runs),
        row.last_success_at + rules.expiry,
    )

"""The shell of the fix patterns: rows, counts, the database's clock (X-14).

1. A good answer on a later attempt is compared with the ladder's invalid ones, in the transaction
   that stores it; each run counts once a pattern, whatever is repeated.
2. The next ladders' first prompts are told the patterns that stand, or, for a share of runs, not.
3. The first answer of each such ladder is counted, with and without, when it is stored.

Rows of patterns are locked in the order of their ids, so that ladders that end together wait for
each other and nothing more.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from agents.core.fix_patterns import (
    Change,
    FixPattern,
    Hint,
    Mode,
    Record,
    Recovery,
    Rules,
    Shape,
    choose_hints,
    describe,
    is_withheld,
    patterns_of,
)
from agents.core.fix_patterns.standing import MAX_PATTERNS, REJECTED, is_stale
from agents.core.interpreting import Schema, reread
from agents.models import Attempt, FixPolicy, FixSuccess, Goal
from agents.models import FixPattern as PatternRow
from diagnostics import clock
from diagnostics.core.cleaning import clean_text
from diagnostics.core.events import ParseErrorType, ValidationErrorItem

logger = structlog.get_logger(__name__)

ACTOR_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Hints:
    """What a ladder's first prompt is told, and the patterns that are withheld from it."""

    told: tuple[Hint, ...] = ()
    withheld: tuple[int, ...] = ()


def rules_of(project_id: int) -> Rules:
    """The project's policy."""
    chosen = FixPolicy.objects.filter(project_id=project_id).values_list("mode")
    (mode,) = chosen.first() or (FixPolicy.Mode.AUTO,)
    return Rules(
        Mode(mode),
        timedelta(days=settings.FAILSOFT_FIX_PATTERN_EXPIRY_DAYS),
        settings.FAILSOFT_FIX_PATTERN_WITHHELD_PERCENT,
    )


def hints_for(goal: Goal, schema: Schema) -> Hints:
    """The hints for a goal's next ladder (S1-44)."""
    rows = list(PatternRow.objects.filter(project_id=goal.project_id, schema=schema))
    if not rows:
        return Hints()
    rules = rules_of(goal.project_id)
    chosen = choose_hints(map(record_of, rows), rules, clock.now())
    if is_withheld(goal.correlation_id, rules):
        return Hints(withheld=tuple(hint.pattern_id for hint in chosen))
    return Hints(chosen)


def record_of(row: PatternRow) -> Record:
    """A row in the terms of the rules."""
    pattern = FixPattern(
        Schema(row.schema),
        ParseErrorType(row.error_class),
        row.code,
        row.pointer,
        Change(row.change),
        Shape(row.before),
        Shape(row.after),
    )
    return Record(
        row.pk,
        pattern,
        row.successes,
        row.last_success_at,
        row.decision,
        row.expired_at,
    )


def learn(goal: Goal, row: Attempt, schema: Schema, good: Any) -> None:  # noqa: ANN401 - any JSON
    """Take in what a good answer after invalid ones teaches, within its transaction."""
    if row.attempt == 1:
        return
    rules = rules_of(goal.project_id)
    if rules.mode is Mode.OFF:
        return
    found = _recovered(goal, row, schema, good)
    if found:
        _count_successes(goal, found, rules, clock.now())


def _recovered(goal: Goal, row: Attempt, schema: Schema, good: Any) -> list[FixPattern]:  # noqa: ANN401 - any JSON
    invalid = goal.attempts.filter(
        cycle=row.cycle,
        node=row.node,
        attempt__lt=row.attempt,
        state=Attempt.State.INVALID,
    )
    found = {
        pattern: None
        for earlier in invalid.order_by("attempt")
        for pattern in patterns_of(_recovery(earlier, schema, good))
    }
    return sorted(found)


def _recovery(earlier: Attempt, schema: Schema, good: Any) -> Recovery:  # noqa: ANN401 - any JSON
    """What is kept of an invalid answer beside the good one; the preview is redacted."""
    broken = reread(earlier.preview, schema)
    return Recovery(
        schema,
        ParseErrorType(earlier.error_type or ""),
        tuple(ValidationErrorItem.model_validate(item) for item in earlier.errors),
        broken.value,
        good,
        broken.dropped,
    )


def _count_successes(
    goal: Goal, found: list[FixPattern], rules: Rules, now: datetime
) -> None:
    mine = PatternRow.objects.filter(project_id=goal.project_id)
    if _make_room(mine, len(found)):
        new = [
            PatternRow(
                project_id=goal.project_id, last_success_at=now, **_columns(item)
            )
            for item in found
        ]
        PatternRow.objects.bulk_create(new, ignore_conflicts=True)
    either = reduce(or_, (Q(**_columns(item)) for item in found))
    rows = list(mine.filter(either).select_for_update().order_by("pk"))
    FixSuccess.objects.filter(pattern__in=rows, at__lte=now - rules.expiry).delete()
    for row in rows:
        _count_success(row, goal.correlation_id, rules, now)


def _count_success(
    row: PatternRow, correlation_id: str, rules: Rules, now: datetime
) -> None:
    """Count a run once; after an expiry the count begins anew."""
    _, is_new = FixSuccess.objects.get_or_create(
        pattern=row, correlation_id=correlation_id, defaults={"at": now}
    )
    if not is_new:
        return
    begins = row.expired_at is not None or is_stale(row.last_success_at, rules, now)
    row.successes = 1 if begins else row.successes + 1
    row.last_success_at, row.expired_at = now, None
    row.save(update_fields=["successes", "last_success_at", "expired_at"])
    logger.info(
        "fix_pattern_learned",
        pattern=row.pk,
        successes=row.successes,
        says=describe(record_of(row).pattern),
    )


def _make_room(mine: QuerySet[PatternRow], needed: int) -> bool:
    """Keep a project within its bound: what nobody needed for longest goes, never a decision."""
    over = mine.count() + needed - MAX_PATTERNS
    if over <= 0:
        return True
    oldest = mine.filter(decision__isnull=True).order_by("last_success_at", "pk")
    going = mine.filter(pk__in=list(oldest.values_list("pk", flat=True)[:over]))
    locked = _lock(going)
    mine.filter(pk__in=locked).delete()
    return len(locked) >= over


def count_first_answer(row: Attempt) -> None:
    """Count the first answer of a ladder for what it was told, or not; within its transaction."""
    if row.attempt != 1 or row.state not in (
        Attempt.State.VALID,
        Attempt.State.INVALID,
    ):
        return
    good = int(row.state == Attempt.State.VALID)
    _add(row.told_patterns, {"told_runs": 1, "told_good": good})
    _add(row.withheld_patterns, {"withheld_runs": 1, "withheld_good": good})


def _add(pattern_ids: list[int], counts: dict[str, int]) -> None:
    if not pattern_ids:
        return
    locked = _lock(PatternRow.objects.filter(pk__in=pattern_ids))
    PatternRow.objects.filter(pk__in=locked).update(
        **{name: F(name) + more for name, more in counts.items()}
    )


def _lock(rows: QuerySet[PatternRow]) -> list[int]:
    """Lock rows in the order of their ids; gives the ids."""
    ordered = rows.select_for_update().order_by("pk")
    return list(ordered.values_list("pk", flat=True))


def decide(row: PatternRow, decision: str, actor: str) -> None:
    """Approve or reject a pattern by hand."""
    PatternRow.objects.filter(pk=row.pk).update(
        decision=decision, decided_by=_named(actor), decided_at=clock.now()
    )
    logger.info(
        "fix_pattern_decided", pattern=row.pk, decision=decision, actor=_named(actor)
    )


def expire(row: PatternRow, actor: str) -> None:
    """Take a pattern out of use until it has proved itself anew; an approval ends with it."""
    now = clock.now()
    with transaction.atomic():
        held = PatternRow.objects.select_for_update().get(pk=row.pk)
        held.expired_at, held.successes = now, 0
        held.decision = held.decision if held.decision == REJECTED else None
        held.decided_by, held.decided_at = _named(actor), now
        held.save()
    logger.info("fix_pattern_expired", pattern=row.pk, actor=_named(actor))


def set_mode(project_id: int, mode: Mode, actor: str) -> None:
    """Set the policy of a project."""
    changed = {
        "mode": mode.value,
        "changed_by": _named(actor),
        "changed_at": clock.now(),
    }
    FixPolicy.objects.update_or_create(project_id=project_id, defaults=changed)
    logger.info("fix_policy_set", project=project_id, **changed)


def _columns(pattern: FixPattern) -> dict[str, str]:
    return {
        "schema": pattern.schema.value,
        "error_class": pattern.error_class.value,
        "code": pattern.code,
        "pointer": pattern.pointer,
        "change": pattern.change.value,
        "before": pattern.before.value,
        "after": pattern.after.value,
    }


def _named(actor: str) -> str:
    return clean_text(actor)[:ACTOR_CHARACTERS]

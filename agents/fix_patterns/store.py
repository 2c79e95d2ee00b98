"""The shell of the fix patterns: rows, counts, the database's clock.

1. A good answer on a later attempt is compared with the ladder's invalid ones, in the transaction
   that stores it; each run counts once a pattern, whatever is repeated.
2. The first answer of each ladder that was told patterns, or from which they were withheld, is
   counted, when it is stored.

Rows of patterns are locked in the order of their ids, so that ladders that end together wait for
each other and nothing more.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

import structlog
from django.db import transaction
from django.db.models import F, Q, QuerySet

from agents.fix_patterns.kinds import FixRule
from agents.fix_patterns.models import FixPattern, FixPolicy, FixSuccess
from agents.fix_patterns.records import rules_of
from agents.fix_patterns.recoveries import Recovery, patterns_of
from agents.fix_patterns.status import MAX_PATTERNS, PatternMode, PatternPolicy, is_stale
from agents.goals.models import Attempt, Goal
from diagnostics import clock
from diagnostics.accounts.audit_log import Actor, identity_of, note
from failsoft.events import ParseErrorType, ValidationErrorItem
from failsoft.json_values import clean_text
from failsoft.retry.answers import PlannerSchema, reread

logger = structlog.get_logger(__name__)


def learn(goal: Goal, row: Attempt, schema: PlannerSchema, good: Any) -> None:  # noqa: ANN401 - any JSON
    """Take in what a good answer after invalid ones teaches, within its transaction."""
    if row.attempt == 1:
        return
    rules = rules_of(goal.project_id)
    if rules.mode is PatternMode.OFF:
        return
    found = _recovered(goal, row, schema, good)
    if found:
        _count_successes(goal, found, rules, clock.now())


def _recovered(goal: Goal, row: Attempt, schema: PlannerSchema, good: Any) -> list[FixRule]:  # noqa: ANN401 - any JSON
    invalid = goal.attempts.filter(
        cycle=row.cycle, node=row.node, attempt__lt=row.attempt, state=Attempt.State.INVALID
    )
    found = {
        pattern: None
        for earlier in invalid.order_by("attempt")
        for pattern in patterns_of(_recovery(earlier, schema, good))
    }
    return sorted(found)


def _recovery(earlier: Attempt, schema: PlannerSchema, good: Any) -> Recovery:  # noqa: ANN401 - any JSON
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


def _count_successes(goal: Goal, found: list[FixRule], rules: PatternPolicy, now: datetime) -> None:
    mine = FixPattern.objects.filter(project_id=goal.project_id)
    if _make_room(mine, len(found)):
        same = {"project_id": goal.project_id, "last_success_at": now}
        new = [FixPattern(**same, **asdict(rule)) for rule in found]
        FixPattern.objects.bulk_create(new, ignore_conflicts=True)
    either = reduce(or_, (Q(**asdict(rule)) for rule in found))
    rows = list(mine.filter(either).select_for_update().order_by("pk"))
    FixSuccess.objects.filter(pattern__in=rows, at__lte=now - rules.expiry).delete()
    for row in rows:
        _count_success(row, goal.correlation_id, rules, now)


def _count_success(
    row: FixPattern, correlation_id: str, rules: PatternPolicy, now: datetime
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
    logger.info("fix_pattern_learned", pattern=row.pk, successes=row.successes, says=row.says)


def _make_room(mine: QuerySet[FixPattern], needed: int) -> bool:
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
    if row.attempt != 1 or row.state not in (Attempt.State.VALID, Attempt.State.INVALID):
        return
    good = int(row.state == Attempt.State.VALID)
    _add(row.told_patterns, {"told_runs": 1, "told_good": good})
    _add(row.withheld_patterns, {"withheld_runs": 1, "withheld_good": good})


def _add(pattern_ids: list[int], counts: dict[str, int]) -> None:
    if not pattern_ids:
        return
    locked = _lock(FixPattern.objects.filter(pk__in=pattern_ids))
    FixPattern.objects.filter(pk__in=locked).update(
        **{name: F(name) + more for name, more in counts.items()}
    )


def _lock(rows: QuerySet[FixPattern]) -> list[int]:
    """Lock rows in the order of their ids; gives the ids."""
    ordered = rows.select_for_update().order_by("pk")
    return list(ordered.values_list("pk", flat=True))


ACTOR_CHARACTERS = 200


def approve(row: FixPattern, actor: Actor) -> None:
    """Let a pattern be told once it has successes enough."""
    _decide(row, FixPattern.Decision.APPROVED, actor, "approve")


def reject(row: FixPattern, actor: Actor) -> None:
    """Let a pattern never be told, whatever its successes."""
    _decide(row, FixPattern.Decision.REJECTED, actor, "reject")


@transaction.atomic
def _decide(row: FixPattern, decision: FixPattern.Decision, actor: Actor, verb: str) -> None:
    FixPattern.objects.filter(pk=row.pk).update(
        decision=decision, decided_by=_named(actor), decided_at=clock.now()
    )
    note(row.project_id, actor, f"fix_pattern.{verb}", str(row))
    logger.info("fix_pattern_decided", pattern=row.pk, decision=decision, actor=_named(actor))


def expire(row: FixPattern, actor: Actor) -> None:
    """Take a pattern out of use until it has proved itself anew; an approval ends with it."""
    now = clock.now()
    with transaction.atomic():
        held = FixPattern.objects.select_for_update().get(pk=row.pk)
        held.expired_at, held.successes = now, 0
        if held.decision == FixPattern.Decision.APPROVED:
            held.decision = None
        held.decided_by, held.decided_at = _named(actor), now
        held.save()
        note(row.project_id, actor, "fix_pattern.expire", str(row))
    logger.info("fix_pattern_expired", pattern=row.pk, actor=_named(actor))


@transaction.atomic
def set_mode(project_id: int, mode: PatternMode, actor: Actor) -> None:
    """Set the policy of a project."""
    changed = {"mode": mode.value, "changed_by": _named(actor), "changed_at": clock.now()}
    FixPolicy.objects.update_or_create(project_id=project_id, defaults=changed)
    note(project_id, actor, "fix_patterns.policy", mode.value)
    logger.info("fix_policy_set", project=project_id, **changed)


DECISIONS: Mapping[str, Callable[[FixPattern, Actor], None]] = {
    "approve": approve,
    "reject": reject,
    "expire": expire,
}


def _named(actor: Actor) -> str:
    return clean_text(identity_of(actor)[1])[:ACTOR_CHARACTERS]

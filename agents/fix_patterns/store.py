"""Store fix patterns: learn from recoveries, count first answers, record decisions.

1. A valid answer on a later attempt is compared with the invalid ones before it, in the
   transaction that stores it; each run counts once per pattern.
2. The first answer of each cycle that had hints, or from which they were withheld, is
   counted when it is stored.

Rows of patterns are locked in the order of their ids, so that concurrent transactions wait for
each other and never deadlock.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial, reduce
from operator import or_
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from agents.fix_patterns.models import FixPattern, FixPolicy, FixSuccess
from agents.fix_patterns.recoveries import Recovery, patterns_of
from agents.fix_patterns.status import (
    DEMO,
    MAX_PATTERNS,
    PatternMode,
    PatternPolicy,
    PatternStatus,
    choose_hints,
    is_stale,
    is_withheld,
    status_of,
)
from agents.goals.models import Attempt, Goal
from diagnostics import clock
from diagnostics.accounts.audit_log import Actor, identity_of, note
from failsoft.events import ParseErrorType, ValidationErrorItem
from failsoft.json_values import clean_text
from failsoft.retry.answers import PlannerSchema, reread
from failsoft.retry.prompts import Hint

logger = structlog.get_logger(__name__)


def learn(goal: Goal, row: Attempt, schema: PlannerSchema, good: Any) -> None:  # noqa: ANN401 - any JSON
    """Learn from a valid answer after invalid ones, within its transaction."""
    if row.attempt == 1:
        return
    policy = policy_of(goal.project_id)
    if policy.mode is PatternMode.OFF:
        return
    invalid = goal.attempts.filter(
        cycle=row.cycle, node=row.node, attempt__lt=row.attempt, state=Attempt.State.INVALID
    )
    learned = set()
    for earlier in invalid.order_by("attempt"):
        error_type = ParseErrorType(earlier.error_type or "")
        errors = tuple(ValidationErrorItem.model_validate(item) for item in earlier.errors)
        # Read from the preview, which is redacted.
        broken = reread(earlier.preview, schema)
        recovery = Recovery(schema, error_type, errors, broken.value, good, broken.dropped)
        learned.update(patterns_of(recovery))
    if not learned:
        return
    now, patterns = clock.now(), FixPattern.objects.filter(project_id=goal.project_id)
    known = patterns.filter(reduce(or_, (Q(**asdict(rule)) for rule in learned)))
    missing = sorted(learned - {row.rule for row in known})
    if _make_room(patterns, known, len(missing)):
        defaults = {"project_id": goal.project_id, "last_success_at": now}
        new = [FixPattern(**defaults, **asdict(rule)) for rule in missing]
        FixPattern.objects.bulk_create(new, ignore_conflicts=True)
    rows = list(known.select_for_update().order_by("pk"))
    FixSuccess.objects.filter(pattern__in=rows, at__lte=now - policy.expiry).delete()
    for success in rows:
        _count_success(success, goal.correlation_id, policy, now)


def _count_success(
    row: FixPattern, correlation_id: str, policy: PatternPolicy, now: datetime
) -> None:
    """Count a run once; after an expiry the count restarts."""
    _, is_new = FixSuccess.objects.get_or_create(
        pattern=row, correlation_id=correlation_id, defaults={"at": now}
    )
    if not is_new:
        return
    if row.decided_by == DEMO:
        # Its decision and its counts are made up; from now on it is a pattern like any other.
        row.decision, row.decided_by, row.decided_at, row.successes = None, "", None, 0
        row.told_runs = row.told_good = row.withheld_runs = row.withheld_good = 0
    begins = row.expired_at is not None or is_stale(row.last_success_at, policy, now)
    row.successes = 1 if begins else row.successes + 1
    row.last_success_at, row.expired_at = now, None
    row.save()
    logger.info("fix_pattern_learned", pattern=row.pk, successes=row.successes, says=row.says)


def _make_room(patterns: QuerySet[FixPattern], known: QuerySet[FixPattern], needed: int) -> bool:
    """Keep a project within its limit: delete undecided patterns, the least recently used first."""
    excess = patterns.count() + needed - MAX_PATTERNS
    if excess <= 0:
        return True
    undecided = patterns.filter(decision__isnull=True).exclude(pk__in=known)
    oldest = undecided.order_by("last_success_at", "pk")
    expendable = patterns.filter(pk__in=list(oldest.values_list("pk", flat=True)[:excess]))
    locked = _lock(expendable)
    patterns.filter(pk__in=locked).delete()
    return len(locked) >= excess


def count_first_answer(row: Attempt) -> None:
    """Count a first answer for the hints it had, or lacked; within its transaction."""
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
    ordered = rows.select_for_update().order_by("pk")
    return list(ordered.values_list("pk", flat=True))


ACTOR_CHARACTERS = 200


@transaction.atomic
def _decide(decision: FixPattern.Decision, verb: str, row: FixPattern, actor: Actor) -> None:
    FixPattern.objects.filter(pk=row.pk).update(
        decision=decision, decided_by=_decider(row, actor), decided_at=clock.now()
    )
    note(row.project_id, actor, f"fix_pattern.{verb}", str(row))
    logger.info("fix_pattern_decided", pattern=row.pk, decision=decision, actor=_actor_name(actor))


# A pattern that is approved becomes a hint once it has enough successes, a rejected one never.
approve = partial(_decide, FixPattern.Decision.APPROVED, "approve")
reject = partial(_decide, FixPattern.Decision.REJECTED, "reject")


def expire(row: FixPattern, actor: Actor) -> None:
    """Expire a pattern until it has enough new successes; this revokes an approval."""
    now = clock.now()
    with transaction.atomic():
        locked = FixPattern.objects.select_for_update().get(pk=row.pk)
        locked.expired_at, locked.successes = now, 0
        if locked.decision == FixPattern.Decision.APPROVED:
            locked.decision = None
        locked.decided_by, locked.decided_at = _decider(locked, actor), now
        locked.save()
        note(row.project_id, actor, "fix_pattern.expire", str(row))
    logger.info("fix_pattern_expired", pattern=row.pk, actor=_actor_name(actor))


@transaction.atomic
def set_mode(project_id: int, mode: PatternMode, actor: Actor) -> None:
    changed = {"mode": mode.value, "changed_by": _actor_name(actor), "changed_at": clock.now()}
    FixPolicy.objects.update_or_create(project_id=project_id, defaults=changed)
    note(project_id, actor, "fix_patterns.policy", mode.value)
    logger.info("fix_policy_set", project=project_id, **changed)


DECISIONS: Mapping[str, Callable[[FixPattern, Actor], None]] = {
    "approve": approve,
    "reject": reject,
    "expire": expire,
}


def _decider(row: FixPattern, actor: Actor) -> str:
    """Return who decided; a pattern of the demo stays one: no real prompt has it."""
    return DEMO if row.decided_by == DEMO else _actor_name(actor)


def _actor_name(actor: Actor) -> str:
    return clean_text(identity_of(actor)[1])[:ACTOR_CHARACTERS]


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

"""What people decide about fix patterns: approve, reject, expire, and the policy of a project."""

from collections.abc import Callable, Mapping

import structlog
from django.db import transaction

from agents.core.fix_patterns import Mode
from agents.models import FixPattern, FixPolicy
from diagnostics import clock
from diagnostics.core.cleaning import clean_text

logger = structlog.get_logger(__name__)

ACTOR_CHARACTERS = 200


def approve(row: FixPattern, actor: str) -> None:
    """Let a pattern be told once it has successes enough."""
    _decide(row, FixPattern.Decision.APPROVED, actor)


def reject(row: FixPattern, actor: str) -> None:
    """Let a pattern never be told, whatever its successes."""
    _decide(row, FixPattern.Decision.REJECTED, actor)


def _decide(row: FixPattern, decision: FixPattern.Decision, actor: str) -> None:
    FixPattern.objects.filter(pk=row.pk).update(
        decision=decision, decided_by=_named(actor), decided_at=clock.now()
    )
    logger.info("fix_pattern_decided", pattern=row.pk, decision=decision, actor=_named(actor))


def expire(row: FixPattern, actor: str) -> None:
    """Take a pattern out of use until it has proved itself anew; an approval ends with it."""
    now = clock.now()
    with transaction.atomic():
        held = FixPattern.objects.select_for_update().get(pk=row.pk)
        held.expired_at, held.successes = now, 0
        if held.decision == FixPattern.Decision.APPROVED:
            held.decision = None
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


DECISIONS: Mapping[str, Callable[[FixPattern, str], None]] = {
    "approve": approve,
    "reject": reject,
    "expire": expire,
}


def _named(actor: str) -> str:
    return clean_text(actor)[:ACTOR_CHARACTERS]

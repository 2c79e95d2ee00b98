"""Which patterns are told to whom: after enough distinct successes, not for ever, never to all.

A share of runs is told nothing, by the hash of their correlation id, so that what the hints are
worth can be seen: first answers with and without them.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from failsoft.retry.prompts import Hint

NEEDED_SUCCESSES = 3
MAX_HINTS = 3
MAX_PATTERNS = 200
BUCKETS = 100
APPROVED = "approved"
REJECTED = "rejected"
DEMO = "demo data"
"""Who decided on patterns of the demo: they are shown, and no real prompt has them."""


class PatternMode(StrEnum):
    """A project's policy: who decides that a pattern is used."""

    # Nothing is learned and nothing is told.
    OFF = "off"
    # Enough successes decide.
    AUTO = "auto"
    # Enough successes propose, an operator decides.
    APPROVE = "approve"


class PatternStatus(StrEnum):
    """Where a pattern stands."""

    # Not enough distinct successes yet.
    LEARNING = "learning"
    # Enough, and an operator has to say yes.
    WAITING = "waiting"
    ACTIVE = "active"
    REJECTED = "rejected"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class PatternPolicy:
    """A project's policy with what the installation sets."""

    mode: PatternMode = PatternMode.AUTO
    expiry: timedelta = timedelta(days=30)
    withheld_percent: int = 20


class PatternCounts(Protocol):
    """What is kept of a pattern; `decision` is None, approved or rejected."""

    pk: Any
    successes: int
    last_success_at: datetime
    decision: str | None
    expired_at: datetime | None

    @property
    def says(self) -> str:
        """The sentence that a prompt is told."""


def standing_of(record: PatternCounts, rules: PatternPolicy, now: datetime) -> PatternStatus:
    """Where a pattern stands at a time."""
    if record.decision == REJECTED:
        return PatternStatus.REJECTED
    if record.expired_at or is_stale(record.last_success_at, rules, now):
        return PatternStatus.EXPIRED
    if record.successes < NEEDED_SUCCESSES:
        return PatternStatus.LEARNING
    if rules.mode is PatternMode.APPROVE and record.decision != APPROVED:
        return PatternStatus.WAITING
    return PatternStatus.ACTIVE


def is_stale(last_success_at: datetime, rules: PatternPolicy, now: datetime) -> bool:
    """Whether nobody was put right this way for too long."""
    return now - last_success_at >= rules.expiry


def choose_hints(
    records: Iterable[PatternCounts], rules: PatternPolicy, now: datetime
) -> tuple[Hint, ...]:
    """The hints for a prompt: those with most successes, each sentence once."""
    if rules.mode is PatternMode.OFF:
        return ()
    active = [
        record for record in records if standing_of(record, rules, now) is PatternStatus.ACTIVE
    ]
    active.sort(key=lambda record: (-record.successes, record.pk))
    chosen: dict[str, Hint] = {}
    for record in active:
        chosen.setdefault(record.says, Hint(record.pk, record.says))
    return tuple(chosen.values())[:MAX_HINTS]


def is_withheld(correlation_id: str, rules: PatternPolicy) -> bool:
    """Whether a run is of the share that is told nothing."""
    digest = hashlib.blake2b(correlation_id.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest) % BUCKETS < rules.withheld_percent

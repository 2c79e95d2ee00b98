"""Which patterns become hints: after enough distinct successes, until they expire.

A share of runs, by the hash of the correlation id, gets no hints, so that their effect can be
measured: first answers with and without them.
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
"""`decided_by` of patterns of the demo: they are shown, and no real prompt has them."""


class PatternMode(StrEnum):
    """A project's policy: what decides that a pattern is used."""

    # Nothing is learned and no hints are added.
    OFF = "off"
    # Enough successes decide.
    AUTO = "auto"
    # Enough successes propose, an operator decides.
    APPROVE = "approve"


class PatternStatus(StrEnum):
    # Not enough distinct successes yet.
    LEARNING = "learning"
    # Enough, and an operator has to say yes.
    WAITING = "waiting"
    ACTIVE = "active"
    REJECTED = "rejected"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class PatternPolicy:
    """A project's policy with the settings of the installation."""

    mode: PatternMode = PatternMode.AUTO
    expiry: timedelta = timedelta(days=30)
    withheld_percent: int = 20


class PatternCounts(Protocol):
    """The stored fields of a pattern; `decision` is None, approved or rejected."""

    pk: Any
    successes: int
    last_success_at: datetime
    decision: str | None
    expired_at: datetime | None

    @property
    def says(self) -> str:
        """The sentence in the prompt."""


def status_of(record: PatternCounts, policy: PatternPolicy, now: datetime) -> PatternStatus:
    if record.decision == REJECTED:
        return PatternStatus.REJECTED
    if record.expired_at or is_stale(record.last_success_at, policy, now):
        return PatternStatus.EXPIRED
    if record.successes < NEEDED_SUCCESSES:
        return PatternStatus.LEARNING
    if policy.mode is PatternMode.APPROVE and record.decision != APPROVED:
        return PatternStatus.WAITING
    return PatternStatus.ACTIVE


def is_stale(last_success_at: datetime, policy: PatternPolicy, now: datetime) -> bool:
    return now - last_success_at >= policy.expiry


def choose_hints(
    records: Iterable[PatternCounts], policy: PatternPolicy, now: datetime
) -> tuple[Hint, ...]:
    """Return the hints for a prompt: those with most successes, each sentence once."""
    if policy.mode is PatternMode.OFF:
        return ()
    active = [
        record for record in records if status_of(record, policy, now) is PatternStatus.ACTIVE
    ]
    active.sort(key=lambda record: (-record.successes, record.pk))
    chosen: dict[str, Hint] = {}
    for record in active:
        chosen.setdefault(record.says, Hint(record.pk, record.says))
    return tuple(chosen.values())[:MAX_HINTS]


def is_withheld(correlation_id: str, policy: PatternPolicy) -> bool:
    """Whether a run is in the share without hints."""
    digest = hashlib.blake2b(correlation_id.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest) % BUCKETS < policy.withheld_percent

"""Which patterns are told to whom: after enough distinct successes, not for ever, never to all.

A share of runs is told nothing, by the hash of their correlation id, so that what the hints are
worth can be seen: first answers with and without them.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from agents.fix_patterns.kinds import RULES, STAR, WHOLE, FixChange, FixRule, ValueShape
from failsoft.retry.prompts import Hint

SHAPES: Mapping[ValueShape, str] = {
    ValueShape.NULL: "null",
    ValueShape.BOOLEAN: "true or false",
    ValueShape.NUMBER: "a number",
    ValueShape.TEXT: "a text",
    ValueShape.LIST: "a list",
    ValueShape.OBJECT: "an object",
}
FORM = "has the form that is shown"
ANSWER = "The answer"


def describe(pattern: FixRule) -> str:
    """One sentence that a planner can follow; no word of it comes from an answer."""
    if not pattern.pointer and pattern.code in WHOLE:
        return WHOLE[pattern.code]
    place = describe_place(pattern.pointer)
    named = f"`{place}`" if place else ANSWER
    return f"{named} {_say(pattern)}."


def describe_place(pointer: str) -> str:
    """A pointer as a path: `/steps/*/tool` is `steps[*].tool`; nothing for the whole answer."""
    said = ""
    for part in pointer.split("/")[1:]:
        said += f"[{STAR}]" if part == STAR else f".{part}" if said else part
    return said


def _say(pattern: FixRule) -> str:
    match pattern.change:
        case FixChange.ADDED:
            return f"is never left out{_is(pattern.after)}"
        case FixChange.RENAMED:
            key = pattern.pointer.rpartition("/")[2]
            return f"is never left out: its key is exactly `{key}`"
        case FixChange.REMOVED:
            return RULES.get(pattern.code, "is left out")
        case FixChange.RETYPED:
            return _is_not(pattern.after, pattern.before)
        case _:
            return RULES.get(pattern.code, FORM)


def _is(shape: ValueShape) -> str:
    return f": it is {SHAPES[shape]}" if shape in SHAPES else ""


def _is_not(shape: ValueShape, other: ValueShape) -> str:
    known = shape in SHAPES and other in SHAPES
    return f"is {SHAPES[shape]}, not {SHAPES[other]}" if known else FORM


NEEDED_SUCCESSES = 3
MAX_HINTS = 3
MAX_PATTERNS = 200
BUCKETS = 100
APPROVED = "approved"
REJECTED = "rejected"


class Mode(StrEnum):
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
class Rules:
    """A project's policy with what the installation sets."""

    mode: Mode = Mode.AUTO
    expiry: timedelta = timedelta(days=30)
    withheld_percent: int = 20


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of a pattern; `decision` is None, approved or rejected."""

    pattern_id: int
    pattern: FixRule
    successes: int
    last_success_at: datetime
    decision: str | None = None
    expired_at: datetime | None = None


def standing_of(record: Record, rules: Rules, now: datetime) -> PatternStatus:
    """Where a pattern stands at a time."""
    if record.decision == REJECTED:
        return PatternStatus.REJECTED
    if record.expired_at or is_stale(record.last_success_at, rules, now):
        return PatternStatus.EXPIRED
    if record.successes < NEEDED_SUCCESSES:
        return PatternStatus.LEARNING
    if rules.mode is Mode.APPROVE and record.decision != APPROVED:
        return PatternStatus.WAITING
    return PatternStatus.ACTIVE


def is_stale(last_success_at: datetime, rules: Rules, now: datetime) -> bool:
    """Whether nobody was put right this way for too long."""
    return now - last_success_at >= rules.expiry


def choose_hints(records: Iterable[Record], rules: Rules, now: datetime) -> tuple[Hint, ...]:
    """The hints for a prompt: those with most successes, each sentence once."""
    if rules.mode is Mode.OFF:
        return ()
    active = [
        record for record in records if standing_of(record, rules, now) is PatternStatus.ACTIVE
    ]
    active.sort(key=lambda record: (-record.successes, record.pattern_id))
    chosen: dict[str, Hint] = {}
    for record in active:
        text = describe(record.pattern)
        chosen.setdefault(text, Hint(record.pattern_id, text))
    return tuple(chosen.values())[:MAX_HINTS]


def is_withheld(correlation_id: str, rules: Rules) -> bool:
    """Whether a run is of the share that is told nothing."""
    digest = hashlib.blake2b(correlation_id.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest) % BUCKETS < rules.withheld_percent

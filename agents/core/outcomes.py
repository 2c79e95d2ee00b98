"""How planning went over a whole goal (design: outcome)."""

from collections.abc import Collection
from enum import StrEnum

from agents.core.attempts import Ending, Exhausted, HaltReason, Interrupted, Unanswered
from diagnostics.core.events import CallErrorType


class Outcome(StrEnum):
    """The eight ends of planning."""

    OK_FIRST = "ok_first"
    REPAIRED = "repaired"
    DEGRADED = "degraded"
    STUBBED = "stubbed"
    CIRCUIT_OPEN = "circuit_open"
    PROVIDER_FAILED = "provider_failed"
    BUDGET_EXHAUSTED = "budget_exhausted"
    CANCELLED = "cancelled"


def outcome_of_good_ladders(attempts_used: Collection[int], *, stubbed: bool) -> Outcome:
    """The outcome when every ladder found an answer: repaired as soon as one needed feedback."""
    if stubbed:
        return Outcome.STUBBED
    return Outcome.REPAIRED if any(number > 1 for number in attempts_used) else Outcome.OK_FIRST


def outcome_of_ending(ending: Ending) -> Outcome:
    """The outcome of the ladder that ended a goal."""
    match ending:
        case Exhausted():
            return Outcome.DEGRADED
        case Unanswered(error_type=CallErrorType.CIRCUIT_OPEN):
            return Outcome.CIRCUIT_OPEN
        case Interrupted(reason=HaltReason.CANCELLED):
            return Outcome.CANCELLED
        case Interrupted() | Unanswered(error_type=CallErrorType.BUDGET_EXHAUSTED):
            return Outcome.BUDGET_EXHAUSTED
        case Unanswered():
            return Outcome.PROVIDER_FAILED
        case _:
            return Outcome.OK_FIRST if ending.attempts == 1 else Outcome.REPAIRED


def degraded_reason(ending: Ending, parse_reason: str) -> str:
    """The `reason` of the degraded event (docs/http-api.md)."""
    match ending:
        case Unanswered(error_type=CallErrorType.TIMEOUT):
            return "timeout"
        case Exhausted():
            return parse_reason
        case _:
            return outcome_of_ending(ending).value

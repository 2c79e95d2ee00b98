"""The ladder of attempts: a pure, bounded generator that decides, while the shell calls and stores.

1. Each yielded `Attempt` says what to ask and how; the shell sends back what came of it.
2. An invalid answer leads to one more attempt with feedback, the last one simplified.
   Without feedback, every attempt repeats the initial prompt.
3. A call that got no answer uses up its attempt; a timeout goes on without feedback of its own, any
   other failed call ends the ladder, because the transport has already retried it.
4. The generator returns how the ladder ended, after `max_attempts` attempts at the latest.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from failsoft.events import CallErrorType, ParseErrorType, ValidationErrorItem
from failsoft.retry.policy import RetryConfig


class OutputMode(StrEnum):
    """How an answer is asked for."""

    TEXT = "text"
    JSON = "json"
    SCHEMA = "schema"
    TOOLS = "tools"


class HaltReason(StrEnum):
    """Why a ladder may not go on, though attempts are left."""

    BUDGET_EXHAUSTED = "budget_exhausted"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class LadderPolicy:
    """Everything a ladder's course depends on; times in seconds, output in tokens."""

    retry: RetryConfig = field(default_factory=RetryConfig)
    output_mode: OutputMode = OutputMode.TEXT
    last_output_mode: OutputMode = OutputMode.TEXT
    max_output_tokens: int = 1024
    max_output_tokens_ceiling: int = 4096
    temperature: float = 0.2
    timeout_seconds: int = 60
    optional_constraints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feedback:
    """What was wrong with an earlier answer: its text, why, and the located errors."""

    broken_text: str
    error_type: ParseErrorType
    errors: tuple[ValidationErrorItem, ...]


@dataclass(frozen=True, slots=True)
class PlannedAttempt:
    """One provider call to be made; `number` is 1-based and at most `total`."""

    number: int
    total: int
    feedback: Feedback | None
    simplified: bool
    output_mode: OutputMode
    max_output_tokens: int
    temperature: float
    timeout_seconds: int
    dropped_constraints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Valid:
    """The answer was valid; `value` is what it says."""

    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Invalid:
    """There was an answer and it cannot be used (parse failures)."""

    feedback: Feedback


@dataclass(frozen=True, slots=True)
class CallFailed:
    """There was no answer to judge (call failures).

    With `circuit_open` no call was made; it may be worth while after `retry_after_seconds`.
    """

    error_type: CallErrorType
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Halted:
    """The attempt was not made: a budget is spent, or the goal was cancelled."""

    reason: HaltReason


Result = Valid | Invalid | CallFailed | Halted


@dataclass(frozen=True, slots=True)
class Succeeded:
    """A valid answer on attempt number `attempts`."""

    value: dict[str, Any]
    attempts: int


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Every attempt was made and the last answer was invalid."""

    attempts: int
    last_error: Feedback


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The ladder ended on a call without an answer, or one that could not be made now."""

    attempts: int
    error_type: CallErrorType
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The ladder was told to stop before attempt `attempts + 1`."""

    attempts: int
    reason: HaltReason


Ending = Succeeded | Exhausted | Unanswered | Interrupted


def attempts(policy: LadderPolicy) -> Generator[PlannedAttempt, Result, Ending]:
    """Yield the attempts of one ladder in order and return how it ended."""
    total = policy.retry.max_attempts
    history: list[Result] = []
    for number in range(1, total + 1):
        result = yield plan_attempt(policy, number, history)
        match result:
            case Valid(value):
                return Succeeded(value, number)
            case Halted(reason):
                return Interrupted(number - 1, reason)
            case CallFailed(CallErrorType.CIRCUIT_OPEN as error_type, wait):
                return Unanswered(number - 1, error_type, wait)
            case CallFailed(error_type) if (
                error_type is not CallErrorType.TIMEOUT or number == total
            ):
                return Unanswered(number, error_type)
            case Invalid(feedback) if number == total:
                return Exhausted(number, feedback)
            case _:
                history.append(result)
    raise AssertionError(
        "a ladder has at least one attempt"
    )  # pragma: no cover - max_attempts >= 1


def plan_attempt(policy: LadderPolicy, number: int, history: Sequence[Result]) -> PlannedAttempt:
    """Decide how attempt `number` is made, given what came of the ones before it."""
    total = policy.retry.max_attempts
    retry = policy.retry
    is_last_of_several = number == total > 1
    simplified = (
        is_last_of_several and retry.send_error_feedback and retry.simplify_on_final_attempt
    )
    invalid = [item.feedback for item in history if isinstance(item, Invalid)]
    return PlannedAttempt(
        number=number,
        total=total,
        feedback=invalid[-1] if invalid and retry.send_error_feedback else None,
        simplified=simplified,
        output_mode=policy.last_output_mode if is_last_of_several else policy.output_mode,
        max_output_tokens=_token_allowance(policy, invalid),
        temperature=policy.temperature,
        timeout_seconds=policy.timeout_seconds,
        dropped_constraints=policy.optional_constraints if simplified else (),
    )


def _token_allowance(policy: LadderPolicy, invalid: Sequence[Feedback]) -> int:
    """Allow twice as much after each answer that was cut off, up to the ceiling."""
    cuts = sum(item.error_type is ParseErrorType.TRUNCATED for item in invalid)
    ceiling = max(policy.max_output_tokens_ceiling, policy.max_output_tokens)
    return min(policy.max_output_tokens << cuts, ceiling)

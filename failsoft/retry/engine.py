"""The retry loop: a pure, bounded generator that decides; the caller makes and stores the calls.

1. Each yielded `PlannedAttempt` describes a call; the caller sends back its result.
2. An invalid answer leads to one more attempt with feedback; the last attempt is simplified.
   Without feedback, every attempt repeats the initial prompt.
3. A call without an answer uses up its attempt. A timeout continues without new feedback; any
   other failed call ends the loop, because the transport has retried it already. The caller may
   begin it again after `retry_after_seconds`.
4. The generator returns the outcome, after at most `max_attempts` attempts.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from failsoft.events import CallErrorType, ParseErrorType, ValidationErrorItem
from failsoft.parsing.thinking import ONLY_REASONING
from failsoft.retry.policy import OutputMode, RetryPolicy


class HaltReason(StrEnum):
    """The reason why the loop stops although attempts remain."""

    BUDGET_EXHAUSTED = "budget_exhausted"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Feedback:
    """The text of an invalid answer, its error type and its located errors."""

    broken_text: str
    error_type: ParseErrorType
    errors: tuple[ValidationErrorItem, ...]


@dataclass(frozen=True, slots=True)
class PlannedAttempt:
    """The next provider call; `number` is 1-based and at most `total`."""

    number: int
    total: int
    feedback: Feedback | None
    simplified: bool
    output_mode: OutputMode
    max_output_tokens: int
    temperature: float | None
    timeout_seconds: int
    dropped_constraints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Valid:
    """The answer was valid; `value` is its content, or what you made of it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Invalid:
    """There was an answer, but it is invalid (a parse failure)."""

    feedback: Feedback


@dataclass(frozen=True, slots=True)
class CallFailed:
    """There was no answer (a call failure).

    With `circuit_open` no call was made. If the caller makes it again, it is after
    `retry_after_seconds`.
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

    value: Any
    attempts: int


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Every attempt was made and the last answer was invalid."""

    attempts: int
    last_error: Feedback


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The last call had no answer, or could not be made."""

    attempts: int
    error_type: CallErrorType
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The loop was stopped before attempt `attempts + 1`."""

    attempts: int
    reason: HaltReason


Ending = Succeeded | Exhausted | Unanswered | Interrupted


def attempts(policy: RetryPolicy) -> Generator[PlannedAttempt, Result, Ending]:
    """Yield the attempts of one retry loop in order and return its outcome."""
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
            case CallFailed(error_type, wait) if (
                error_type is not CallErrorType.TIMEOUT or number == total
            ):
                return Unanswered(number, error_type, wait)
            case Invalid(feedback) if number == total:
                return Exhausted(number, feedback)
            case Invalid() | CallFailed():
                history.append(result)
            case _:
                kinds = "Valid, Invalid, CallFailed or Halted"
                raise TypeError(f"send {kinds}, not {type(result).__name__}")
    raise AssertionError("no attempt")  # pragma: no cover - max_attempts >= 1


def plan_attempt(policy: RetryPolicy, number: int, history: Sequence[Result]) -> PlannedAttempt:
    total = policy.retry.max_attempts
    retry = policy.retry
    is_last_of_several = number == total > 1
    simplified = (
        is_last_of_several and retry.send_error_feedback and retry.simplify_on_final_attempt
    )
    invalid = [item.feedback for item in history if isinstance(item, Invalid)]
    # The output limit doubles after each answer that ran out of it, up to the ceiling.
    cuts = sum(
        item.error_type is ParseErrorType.TRUNCATED
        or any(error.code == ONLY_REASONING for error in item.errors)
        for item in invalid
    )
    ceiling = max(policy.max_output_tokens_ceiling, policy.max_output_tokens)
    return PlannedAttempt(
        number=number,
        total=total,
        feedback=invalid[-1] if invalid and retry.send_error_feedback else None,
        simplified=simplified,
        output_mode=policy.last_output_mode if is_last_of_several else policy.output_mode,
        max_output_tokens=min(policy.max_output_tokens << cuts, ceiling),
        temperature=policy.temperature,
        timeout_seconds=policy.timeout_seconds,
        dropped_constraints=policy.optional_constraints if simplified else (),
    )

"""The ladder as a table: what comes in, what is asked next, how it ends."""

from dataclasses import replace

import pytest

from failsoft.events import CallErrorType, ParseErrorType, ValidationErrorItem
from failsoft.parsing import recover
from failsoft.retry.engine import (
    CallFailed,
    Ending,
    Exhausted,
    Feedback,
    Halted,
    HaltReason,
    Interrupted,
    Invalid,
    PlannedAttempt,
    Result,
    Succeeded,
    Unanswered,
    Valid,
    attempts,
)
from failsoft.retry.policy import OutputMode, RetryConfig, RetryPolicy

ERRORS = (ValidationErrorItem(path="/kind", code="missing", message="needed"),)
BROKEN = Invalid(Feedback("broken", ParseErrorType.NOT_JSON, ERRORS))
CUT = Invalid(Feedback("cut", ParseErrorType.TRUNCATED, ERRORS))
GOOD = Valid({"kind": "finish"})
TIMEOUT = CallFailed(CallErrorType.TIMEOUT)
DOWN = CallFailed(CallErrorType.PROVIDER_ERROR)
BROKE = Halted(HaltReason.BUDGET_EXHAUSTED)


def climb(policy: RetryPolicy, *results: Result) -> tuple[list[PlannedAttempt], Ending | None]:
    """The attempts that were asked for, and the ending when there is one."""
    ladder = attempts(policy)
    planned = [next(ladder)]
    for result in results:
        try:
            planned.append(ladder.send(result))
        except StopIteration as stop:
            ending: Ending = stop.value
            return planned, ending
    return planned, None


ENDINGS = [
    # the budget, what came of each attempt, how it ends
    (2, [GOOD], Succeeded(GOOD.value, 1)),
    (2, [BROKEN, GOOD], Succeeded(GOOD.value, 2)),
    (2, [BROKEN, BROKEN], Exhausted(2, BROKEN.feedback)),
    (1, [BROKEN], Exhausted(1, BROKEN.feedback)),
    (5, [BROKEN] * 5, Exhausted(5, BROKEN.feedback)),
    (3, [BROKEN, CUT, GOOD], Succeeded(GOOD.value, 3)),
    # A timeout uses its attempt up and the ladder goes on.
    (2, [TIMEOUT, GOOD], Succeeded(GOOD.value, 2)),
    (2, [BROKEN, TIMEOUT], Unanswered(2, CallErrorType.TIMEOUT)),
    # Any other failed call was retried by the transport already.
    (3, [DOWN], Unanswered(1, CallErrorType.PROVIDER_ERROR)),
    (2, [BROKE], Interrupted(0, HaltReason.BUDGET_EXHAUSTED)),
    (3, [BROKEN, BROKE], Interrupted(1, HaltReason.BUDGET_EXHAUSTED)),
]


@pytest.mark.parametrize(("budget", "results", "ending"), ENDINGS)
def test_how_a_ladder_ends(budget: int, results: list[Result], ending: Ending) -> None:
    policy = RetryPolicy(RetryConfig(max_attempts=budget))

    planned, actual_ending = climb(policy, *results)

    assert actual_ending == ending
    assert [attempt.number for attempt in planned] == list(range(1, len(results) + 1))


def test_feedback_comes_from_the_last_invalid_answer() -> None:
    policy = RetryPolicy(RetryConfig(max_attempts=4))

    planned, _ = climb(policy, BROKEN, CUT, TIMEOUT)

    assert [attempt.feedback for attempt in planned] == [
        None,
        BROKEN.feedback,
        CUT.feedback,
        CUT.feedback,
    ]


def test_a_timeout_alone_gives_no_feedback() -> None:
    planned, _ = climb(RetryPolicy(), TIMEOUT)

    assert planned[1].feedback is None


def test_without_feedback_the_last_attempt_is_not_simplified_either() -> None:
    policy = RetryPolicy(RetryConfig(send_error_feedback=False), optional_constraints=("in rhyme",))

    (first, last), _ = climb(policy, BROKEN)

    assert last == replace(first, number=2)


@pytest.mark.parametrize(("budget", "simplified"), [(1, [False]), (3, [False, False, True])])
def test_the_last_of_several_attempts_is_simplified(budget: int, simplified: list[bool]) -> None:
    policy = RetryPolicy(RetryConfig(max_attempts=budget), optional_constraints=("in rhyme",))

    planned, _ = climb(policy, *[BROKEN] * (budget - 1))

    assert [attempt.simplified for attempt in planned] == simplified
    assert [bool(attempt.dropped_constraints) for attempt in planned] == simplified
    assert planned[-1].feedback == (BROKEN.feedback if budget > 1 else None)


def test_the_last_attempt_uses_the_providers_schema_mode() -> None:
    policy = RetryPolicy(last_output_mode=OutputMode.SCHEMA)

    planned, _ = climb(policy, BROKEN)

    assert [attempt.output_mode for attempt in planned] == [OutputMode.TEXT, OutputMode.SCHEMA]


def test_a_cut_answer_is_given_twice_as_much_up_to_the_ceiling() -> None:
    policy = RetryPolicy(
        RetryConfig(max_attempts=4), max_output_tokens=100, max_output_tokens_ceiling=300
    )

    planned, _ = climb(policy, CUT, CUT, BROKEN)

    assert [attempt.max_output_tokens for attempt in planned] == [100, 200, 300, 300]


@pytest.mark.parametrize("result", [recover("no JSON"), {"kind": "finish"}, None])
def test_what_is_no_result_of_an_attempt_is_refused_by_its_type(result: object) -> None:
    with pytest.raises(TypeError, match=f"Invalid.* not {type(result).__name__}"):
        climb(RetryPolicy(), result)  # type: ignore[arg-type] # what a caller may send

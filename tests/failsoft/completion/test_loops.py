"""What follows a check: bounded loops that end with a reason (X-9, X-10)."""

from typing import Any

import pytest

from failsoft.completion.specification import CheckSpec
from failsoft.completion.verdicts import (
    CheckDecision,
    DecidedCheck,
    Move,
    NextMove,
    count_streak,
    next_turn,
)

YES = DecidedCheck(CheckDecision.COMPLETE)
NO = DecidedCheck(CheckDecision.INCOMPLETE)
WHO = DecidedCheck(CheckDecision.UNDECIDABLE, reason="invalid_json")
SAME = DecidedCheck(CheckDecision.INCOMPLETE, ("a", "b"))


def spec(**more: Any) -> CheckSpec:
    return CheckSpec(kind="command", command="review", **more)


def turn(checks: list[DecidedCheck], most: int = 100, **more: Any) -> NextMove:
    return next_turn(spec(**more), checks, len(checks), most)


def test_s3_22_an_undecidable_check_goes_round() -> None:
    assert turn([WHO]).move is Move.AGAIN


def test_s3_4_undecidable_checks_alone_do_not_end_a_loop_without_threshold() -> None:
    checks = [WHO, WHO, WHO, WHO]

    assert turn(checks, undecidable_limit=0).move is Move.AGAIN
    assert turn([*checks, YES], undecidable_limit=0).move is Move.FINISH


def test_s3_25_one_more_than_the_threshold_fails_with_count_and_cause() -> None:
    assert turn([WHO, WHO], undecidable_limit=2).move is Move.AGAIN
    ended = turn([WHO, WHO, WHO], undecidable_limit=2)

    assert (ended.move, ended.code) == (Move.FAIL, "undecidable_limit_exceeded")
    assert "3 checks in a row" in (ended.reason or "")
    assert "invalid_json" in (ended.reason or "")


def test_x_10_the_threshold_is_three_by_default() -> None:
    assert turn([WHO] * 3).move is Move.AGAIN
    assert turn([WHO] * 4).move is Move.FAIL


def test_s3_24_s3_35_any_decision_resets_the_count() -> None:
    assert count_streak(spec(), [WHO, WHO, NO]).undecidable == 0
    assert count_streak(spec(), [WHO, NO, WHO]).undecidable == 1
    assert count_streak(spec(), [NO, WHO, WHO]).undecidable == 2


def test_s3_23_the_iterations_are_bounded_and_the_end_has_a_reason() -> None:
    ended = turn([WHO] * 5, most=5, undecidable_limit=0)

    assert (ended.move, ended.code) == (Move.FAIL, "max_iterations_reached")
    assert ended.reason == "not complete after 5 iterations"


def test_an_exhausted_loop_may_be_told_to_go_on() -> None:
    assert turn([NO], most=1, on_exhausted="continue").move is Move.END


def test_a_complete_check_at_the_last_iteration_finishes() -> None:
    assert turn([NO, YES], most=2).move is Move.FINISH


@pytest.mark.parametrize(
    ("checks", "same", "stalled"),
    [
        ([SAME], 1, False),
        ([SAME, SAME], 2, False),
        ([SAME, SAME, SAME], 3, True),
        # The order of fingerprints does not matter.
        ([SAME, DecidedCheck(CheckDecision.INCOMPLETE, ("b", "a")), SAME], 3, True),
        # Another finding, a decision without fingerprints, an undecidable check: it moves.
        ([SAME, SAME, DecidedCheck(CheckDecision.INCOMPLETE, ("a",)), SAME], 1, False),
        ([NO, NO, NO], 0, False),
        ([SAME, SAME, WHO, SAME], 1, False),
        ([SAME, SAME, SAME, YES], 0, False),
    ],
)
def test_a_loop_that_finds_the_same_again_and_again_is_stalled(
    checks: list[DecidedCheck], same: int, stalled: bool
) -> None:
    counts = count_streak(spec(stalled_after=3), checks)

    assert (counts.same, counts.stalled) == (same, stalled)


def test_a_stalled_loop_goes_on_or_ends_as_its_policy_says() -> None:
    assert turn([SAME] * 3).move is Move.AGAIN
    ended = turn([SAME] * 3, on_stalled="abort")

    assert (ended.move, ended.code) == (Move.FAIL, "stalled")
    assert "a, b" in (ended.reason or "")
    assert turn([SAME] * 9, on_stalled="abort", stalled_after=0).move is Move.AGAIN

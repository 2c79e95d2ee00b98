"""Budgets, outcomes, context and stand-ins: the small rules of a goal."""

import pytest

from agents.goals.state import (
    GoalBudget,
    PlanningOutcome,
    Spent,
    degraded_reason,
    describe_answer,
    describe_results,
    outcome_of_ending,
    outcome_of_good_attempts,
    spent_dimension,
)
from failsoft.events import CallErrorType, ParseErrorType
from failsoft.plans.validation import validate_payload
from failsoft.retry.engine import (
    Ending,
    Exhausted,
    Feedback,
    HaltReason,
    Interrupted,
    Succeeded,
    Unanswered,
)
from failsoft.retry.proposals import PROPOSALS
from failsoft.retry.stubs import stub_plan, stub_proposal

BROKEN = Feedback("x", ParseErrorType.NOT_JSON, ())
PARSE = "plan_parse_failed"

ENDINGS = [
    # how the ladder ended, the outcome, the reason of the degraded event
    (Exhausted(2, BROKEN), "degraded", PARSE),
    (Unanswered(1, CallErrorType.TIMEOUT), "provider_failed", "timeout"),
    (Unanswered(1, CallErrorType.PROVIDER_ERROR), "provider_failed", "provider_failed"),
    (Unanswered(1, CallErrorType.RATE_LIMITED), "provider_failed", "provider_failed"),
    (Unanswered(0, CallErrorType.CIRCUIT_OPEN), "circuit_open", "circuit_open"),
    (Unanswered(0, CallErrorType.BUDGET_EXHAUSTED), "budget_exhausted", "budget_exhausted"),
    (Interrupted(1, HaltReason.BUDGET_EXHAUSTED), "budget_exhausted", "budget_exhausted"),
    (Interrupted(1, HaltReason.CANCELLED), "cancelled", "cancelled"),
    (Succeeded({}, 1), "ok_first", "ok_first"),
    (Succeeded({}, 2), "repaired", "repaired"),
]


@pytest.mark.parametrize(("ending", "outcome", "reason"), ENDINGS)
def test_how_planning_went(ending: Ending, outcome: str, reason: str) -> None:
    assert outcome_of_ending(ending) == outcome
    assert degraded_reason(ending, PARSE) == reason


@pytest.mark.parametrize(
    ("used", "stubbed", "outcome"),
    [
        ([1], False, PlanningOutcome.OK_FIRST),
        ([1, 1, 1], False, PlanningOutcome.OK_FIRST),
        ([1, 2, 1], False, PlanningOutcome.REPAIRED),
        ([1, 2], True, PlanningOutcome.STUBBED),
    ],
)
def test_one_repaired_ladder_makes_a_repaired_goal(
    used: list[int], stubbed: bool, outcome: PlanningOutcome
) -> None:
    assert outcome_of_good_attempts(used, stubbed=stubbed) is outcome


BUDGET = GoalBudget(calls=2, tokens=100, seconds=60)


def test_a_budget_that_nobody_gave_is_the_documented_one() -> None:
    assert GoalBudget().model_dump() == {"calls": 10, "tokens": 20_000, "seconds": 300}


@pytest.mark.parametrize(
    ("spent", "dimension"),
    [
        (Spent(), None),
        (Spent(1, 99, 59.9), None),
        (Spent(2, 0, 0), "calls"),
        (Spent(0, 100, 0), "tokens"),
        (Spent(0, 0, 60), "seconds"),
    ],
)
def test_a_budget_is_spent_when_one_ceiling_is_reached(spent: Spent, dimension: str | None) -> None:
    assert spent_dimension(BUDGET, spent) == dimension


def test_results_are_told_in_a_line_a_step() -> None:
    rows = [
        {"step_id": "step_1", "tool": "echo", "ok": True, "output": {"a": "é"}},
        {"step_id": "step_2", "tool": "x", "ok": False, "skipped": False, "error": "no\ntool"},
        {"step_id": "step_3", "tool": "x", "ok": False, "skipped": True, "reason": "dependency"},
        {"step_id": "__meta__", "ok": False},
    ]

    assert describe_results(2, rows) == [
        'cycle 2, step_1 (echo): ok, {"a": "é"}',
        "cycle 2, step_2 (x): failed, no tool",
        "cycle 2, step_3 (x): skipped, dependency",
    ]


def test_an_answer_is_told_with_its_question() -> None:
    assert describe_answer("Which\ncity?", "Oslo") == "asked the user: Which city? - answered: Oslo"


def test_stand_ins_are_valid_and_harmless() -> None:
    assert validate_payload(stub_plan(), strict=True, known_tools={"echo"}) == []
    assert PROPOSALS.validate_python(stub_proposal()).kind == "finish"

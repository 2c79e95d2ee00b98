"""The first line of a goal's page."""

from typing import Any

import pytest

from agents.console.headlines import goal_headline, outside_headline

META = {"stats": {"total_steps": 3, "ok": 1, "failed": 1, "skipped": 1}}
FINE = {"stats": {"total_steps": 2, "ok": 2, "failed": 0, "skipped": 0}}


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"status": "queued"}, "Queued: waiting for a worker"),
        (
            {"status": "queued", "evaluation": {"reason": "circuit_open"}},
            "Waiting: the model's circuit breaker is open",
        ),
        (
            {"status": "queued", "evaluation": {"reason": "circuit_open"}, "is_isolated": True},
            "Waiting: the model is isolated; close its circuit breaker to continue",
        ),
        ({"status": "running"}, "Planning: 2 attempts so far"),
        ({"status": "running", "phase": "do"}, "Running the plan"),
        ({"status": "running", "phase": "check"}, "Checking the result"),
        ({"status": "running", "phase": "act"}, "Deciding the next step"),
        ({"status": "waiting_user"}, "Waiting for an answer"),
        ({"status": "cancelled", "attempts": 1}, "Cancelled after 1 attempt"),
        (
            {"status": "completed", "outcome": "ok_first", "meta": FINE},
            "Completed: valid plan at the first attempt; 2 of 2 steps ok",
        ),
        (
            {"status": "completed", "outcome": "repaired", "meta": FINE},
            "Completed: valid plan, recovered after 2 attempts; 2 of 2 steps ok",
        ),
        (
            {"status": "completed", "outcome": "stubbed"},
            "Completed: no valid plan after 2 attempts, stub plan used",
        ),
        (
            {"status": "failed", "outcome": "degraded", "mode": "next_step"},
            "Degraded: no valid next step after 2 attempts",
        ),
        (
            {"status": "failed", "outcome": "stubbed", "meta": META},
            "Degraded: no valid plan after 2 attempts; stub plan used; "
            "1 of 3 steps ok, 1 failed, 1 skipped",
        ),
        (
            {"status": "failed", "outcome": "provider_failed", "attempts": 1},
            "Degraded: no answer from the provider in 1 attempt",
        ),
        (
            {"status": "failed", "outcome": "budget_exhausted"},
            "Degraded: budget exhausted after 2 attempts",
        ),
        (
            {
                "status": "failed",
                "outcome": "budget_exhausted",
                "evaluation": {"reason": "budget_exhausted", "spent": "seconds"},
            },
            "Failed: timeout after 2 attempts",
        ),
        (
            {"status": "failed", "outcome": "circuit_open", "attempts": 0},
            "Degraded: the model's circuit breaker was open, no call was made",
        ),
        (
            {"status": "failed", "outcome": "ok_first", "meta": META},
            "Failed: valid plan at the first attempt; 1 of 3 steps ok, 1 failed, 1 skipped",
        ),
        ({"status": "failed", "outcome": None}, "Failed: 2 attempts"),
    ],
)
def test_headline(facts: dict[str, Any], line: str) -> None:
    known = {"outcome": None, "phase": "plan", "mode": "plan", "attempts": 2}
    facts = {**known, "meta": None, **facts}
    assert goal_headline(**facts, longest=facts["attempts"]) == line


def test_broken_meta_is_left_out() -> None:
    facts: dict[str, Any] = {"outcome": "ok_first", "phase": "act", "mode": "plan", "attempts": 1}
    line = goal_headline(status="failed", meta={"stats": "none"}, longest=1, **facts)
    assert line == "Failed: valid plan at the first attempt"


def test_a_reported_run_with_a_valid_answer_is_not_said_to_have_none() -> None:
    assert outside_headline(["valid", "invalid"], [], 1)[1] == "1 attempt, the latest not valid"
    assert outside_headline(["invalid", "invalid"], [], 2)[1] == "2 attempts, none valid so far"

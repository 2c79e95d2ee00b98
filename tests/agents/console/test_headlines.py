"""The first line of a goal's page."""

from typing import Any

import pytest

from agents.console.headlines import goal_headline

META = {"stats": {"total_steps": 3, "ok": 1, "failed": 1, "skipped": 1}}
FINE = {"stats": {"total_steps": 2, "ok": 2, "failed": 0, "skipped": 0}}


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"status": "queued"}, "Queued: a worker takes it next"),
        (
            {
                "status": "queued",
                "evaluation": {
                    "reason": "circuit_open",
                    "retry_at": "2026-11-21T12:30:05.123456+00:00",
                },
            },
            "Waiting: the provider's circuit breaker is open, next try at 12:30:05 UTC",
        ),
        ({"status": "running"}, "Planning: 2 attempts so far"),
        ({"status": "running", "phase": "do"}, "Running the plan"),
        ({"status": "running", "phase": "check"}, "Checking the result"),
        ({"status": "running", "phase": "act"}, "Deciding how to go on"),
        ({"status": "waiting_user"}, "Waiting for an answer"),
        ({"status": "cancelled", "attempts": 1}, "Cancelled after 1 attempt"),
        (
            {"status": "completed", "outcome": "ok_first", "meta": FINE},
            "Completed: valid plan at the first attempt; 2 of 2 steps ok",
        ),
        (
            {"status": "completed", "outcome": "repaired", "meta": FINE},
            "Completed: valid plan after a repair, 2 attempts; 2 of 2 steps ok",
        ),
        (
            {"status": "completed", "outcome": "stubbed"},
            "Completed: no valid plan after 2 attempts, a stub plan stood in",
        ),
        (
            {"status": "failed", "outcome": "degraded", "mode": "next_step"},
            "Failed softly: 2 attempts, no valid next step",
        ),
        (
            {"status": "failed", "outcome": "stubbed", "meta": META},
            "Failed softly: no valid plan after 2 attempts; a stub plan stood in; "
            "1 of 3 steps ok, 1 failed, 1 skipped",
        ),
        (
            {"status": "failed", "outcome": "provider_failed", "attempts": 1},
            "Failed softly: the provider gave no answer in 1 attempt",
        ),
        (
            {"status": "failed", "outcome": "budget_exhausted"},
            "Failed softly: the budget was spent after 2 attempts",
        ),
        (
            {
                "status": "failed",
                "outcome": "budget_exhausted",
                "evaluation": {"reason": "budget_exhausted", "spent": "seconds"},
            },
            "Failed: time ran out after 2 attempts",
        ),
        (
            {"status": "failed", "outcome": "circuit_open", "attempts": 0},
            "Failed softly: the provider's circuit breaker is open, no call was made",
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
    assert goal_headline(**{**known, "meta": None, **facts}) == line


def test_broken_meta_is_left_out() -> None:
    facts: dict[str, Any] = {"outcome": "ok_first", "phase": "act", "mode": "plan", "attempts": 1}
    line = goal_headline(status="failed", meta={"stats": "none"}, **facts)
    assert line == "Failed: valid plan at the first attempt"

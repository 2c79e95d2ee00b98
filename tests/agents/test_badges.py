"""How states are shown."""

import pytest

from agents.badges import attempt_label, goal_badge, outcome_badge, step_badge
from agents.goals.models import Attempt, Goal
from plans.models.run import Run


@pytest.mark.parametrize(
    ("status", "task_status", "badge"),
    [
        ("running", None, ("live", "Running")),
        ("running", "FAILED", ("live", "Running")),  # the last cycle's, not the goal's
        ("waiting_user", None, ("warn", "Waiting for answer")),
        ("completed", "COMPLETED", ("good", "Completed")),
        ("completed", "PARTIAL", ("warn", "Partial")),
        ("failed", "BLOCKED", ("bad", "Blocked")),
        ("failed", None, ("bad", "Failed")),
        ("cancelled", "PARTIAL", ("quiet", "Cancelled")),
    ],
)
def test_s2_43_goal_badge(status: str, task_status: str | None, badge: tuple[str, str]) -> None:
    assert goal_badge(status, task_status) == badge


def test_every_state_there_is_has_a_badge() -> None:
    for status in Goal.Status:
        for task_status in (None, *Run.TaskStatus):
            assert goal_badge(status, task_status)[1]
    for outcome in Goal.Outcome:
        assert outcome_badge(outcome)
    for state in Attempt.State:
        assert attempt_label(state, None)[1]


def test_x_4_stub_is_degraded_and_never_a_success() -> None:
    assert outcome_badge("stubbed") == ("bad", "Stub plan, degraded")


def test_no_outcome_has_no_badge() -> None:
    assert outcome_badge(None) is None


@pytest.mark.parametrize(
    ("state", "ok", "skipped", "badge"),
    [
        ("pending", None, None, ("quiet", "Pending")),
        ("started", None, None, ("live", "Running")),
        ("final", True, False, ("good", "OK")),
        ("final", False, False, ("bad", "Failed")),
        ("final", False, True, ("warn", "Skipped")),
    ],
)
def test_s2_44_step_badge(
    state: str, ok: bool | None, skipped: bool | None, badge: tuple[str, str]
) -> None:
    assert step_badge(state, ok=ok, skipped=skipped) == badge


def test_attempt_is_named_by_its_kind_of_failure() -> None:
    assert attempt_label("invalid", "truncated") == ("bad", "truncated")
    assert attempt_label("valid", None) == ("good", "valid")

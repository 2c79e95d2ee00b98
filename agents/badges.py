"""Badges of states: a tone, which is a shape and a colour, and a text."""

from typing import overload

from diagnostics.figures import Tone

Badge = tuple[Tone, str]

TASK_STATUS: dict[str, Tone] = {
    "COMPLETED": "good",
    "PARTIAL": "warn",
    "FAILED": "bad",
    "BLOCKED": "bad",
}
RUN: dict[str, Tone] = {**TASK_STATUS, "queued": "quiet", "running": "live", "poison": "bad"}
GOAL_STATUS: dict[str, Tone] = {
    "queued": "quiet",
    "running": "live",
    "waiting_user": "warn",
    "completed": "good",
    "failed": "bad",
    "cancelled": "quiet",
}
OUTCOME: dict[str, Tone] = {
    "open": "quiet",
    "ok_first": "good",
    "recovered": "good",
    "repaired": "good",
    "unchecked": "quiet",
    "degraded": "bad",
    "stubbed": "bad",
    "circuit_open": "bad",
    "provider_failed": "bad",
    "budget_exhausted": "bad",
    "cancelled": "quiet",
}
WORDS = {
    "ok_first": "First pass",
    "repaired": "Recovered",
    "stubbed": "Stub plan, degraded",
    "waiting_user": "Waiting for answer",
}
ATTEMPT: dict[str, Tone] = {
    "calling": "live",
    "valid": "good",
    "unchecked": "quiet",
    "invalid": "bad",
    "call_failed": "bad",
}


def goal_badge(status: str, task_status: str | None) -> Badge:
    """Return the badge of a goal: the run's `task_status` once the goal has one and ended.

    A failed goal whose last run completed is shown as failed.
    """
    if status == "failed" and task_status == "COMPLETED":
        return GOAL_STATUS[status], _word(status)
    if task_status and status in {"completed", "failed"}:
        return TASK_STATUS[task_status], _word(task_status)
    return GOAL_STATUS[status], _word(status)


def run_badge(state: str, task_status: str | None) -> Badge:
    """Return the badge of a plan run: its `task_status` once it has one."""
    status = task_status or state
    return RUN.get(status, "quiet"), _word(status)


@overload
def outcome_badge(outcome: str) -> Badge: ...
@overload
def outcome_badge(outcome: str | None) -> Badge | None: ...
def outcome_badge(outcome: str | None) -> Badge | None:
    """Return the badge of the outcome of a run or of planning; None while it has none."""
    if outcome is None:
        return None
    return OUTCOME[outcome], _word(outcome)


def step_badge(state: str, *, ok: bool | None, skipped: bool | None) -> Badge:
    if state == "pending":
        return "quiet", "Pending"
    if state == "started":
        return "live", "Running"
    if skipped:
        return "warn", "Skipped"
    return ("good", "OK") if ok else ("bad", "Failed")


def attempt_label(state: str, error_type: str | None) -> Badge:
    """Return the badge of an attempt: its kind of failure if it failed."""
    words = {"calling": "calling the model", "valid": "valid"}
    return ATTEMPT[state], words.get(state) or error_type or state


def _word(status: str) -> str:
    return WORDS.get(status) or status.replace("_", " ").capitalize()

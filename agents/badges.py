"""How a state is shown: a tone, which is a shape and a colour, and a word."""

from diagnostics.web.charts.marks import Tone

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
    "ok_first": "good",
    "repaired": "good",
    "degraded": "bad",
    "stubbed": "bad",
    "circuit_open": "bad",
    "provider_failed": "bad",
    "budget_exhausted": "bad",
    "cancelled": "quiet",
}
OUTCOME_WORDS = {"ok_first": "ok at once", "stubbed": "stub plan, degraded"}
ATTEMPT: dict[str, Tone] = {
    "calling": "live",
    "valid": "good",
    "invalid": "bad",
    "call_failed": "bad",
}


def goal_badge(status: str, task_status: str | None) -> Badge:
    """Return the badge of a goal: the run's `task_status` once the goal has one and ended.

    A goal that failed though its last run did well says that it failed.
    """
    if status == "failed" and task_status == "COMPLETED":
        return GOAL_STATUS[status], status
    if task_status and status in {"completed", "failed"}:
        return TASK_STATUS[task_status], task_status
    return GOAL_STATUS[status], status.replace("_", " ")


def run_badge(state: str, task_status: str | None) -> Badge:
    """Return the badge of a run: its `task_status` once it has one."""
    shown = task_status or state
    return RUN.get(shown, "quiet"), shown


def outcome_badge(outcome: str | None) -> Badge | None:
    """Return the badge of how planning went, None while it goes on."""
    if outcome is None:
        return None
    return OUTCOME[outcome], OUTCOME_WORDS.get(outcome, outcome.replace("_", " "))


def step_badge(state: str, *, ok: bool | None, skipped: bool | None) -> Badge:
    """Return the badge of a step from its stored state and result."""
    if state == "pending":
        return "quiet", "pending"
    if state == "started":
        return "live", "running"
    if skipped:
        return "warn", "skipped"
    return ("good", "ok") if ok else ("bad", "failed")


def attempt_label(state: str, error_type: str | None) -> Badge:
    """Return the tone and word of an attempt: its kind of failure where there is one."""
    words = {"calling": "calling the model", "valid": "valid"}
    return ATTEMPT[state], words.get(state) or error_type or state

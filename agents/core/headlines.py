"""The first line of a goal's page: one sentence, made of what is stored."""

from collections.abc import Mapping

from diagnostics.core.wording import plural

PLANNED = {"plan": "plan", "next_step": "next step", "actions": "list of actions"}
ENDED_WITHOUT_PLAN = {
    "stubbed": "no valid {wanted} after {attempts}; a stub plan stood in",
    "degraded": "{attempts}, no valid {wanted}",
    "circuit_open": "the provider's circuit breaker is open, no call was made",
    "provider_failed": "the provider gave no answer in {attempts}",
    "budget_exhausted": "the budget was spent after {attempts}",
}


def goal_headline(
    *,
    status: str,
    outcome: str | None,
    phase: str,
    mode: str,
    attempts: int,
    meta: Mapping[str, object] | None,
    evaluation: Mapping[str, object] | None = None,
) -> str:
    """Say how the goal stands: how planning went, then how the steps went."""
    made, wanted = plural(attempts, "attempt"), PLANNED.get(mode, mode)
    steps = steps_told(meta)
    match status:
        case "queued":
            return queued_told(evaluation or {})
        case "running":
            return running_told(phase, attempts)
        case "waiting_user":
            return "Waiting for an answer"
        case "cancelled":
            return f"Cancelled after {made}"
        case "completed":
            return f"Completed: {planning_told(outcome, made, wanted)}{steps}"
    if outcome == "budget_exhausted" and (evaluation or {}).get("spent") == "seconds":
        return f"Failed: time ran out after {made}{steps}"
    if outcome in ENDED_WITHOUT_PLAN:
        told = ENDED_WITHOUT_PLAN[outcome].format(attempts=made, wanted=wanted)
        return f"Failed softly: {told}{steps if outcome == 'stubbed' else ''}"
    return f"Failed: {planning_told(outcome, made, wanted)}{steps}"


def queued_told(evaluation: Mapping[str, object]) -> str:
    """Say what a queued goal waits for: a worker, or a circuit breaker."""
    if evaluation.get("reason") != "circuit_open":
        return "Queued: a worker takes it next"
    back_at = str(evaluation.get("retry_at", ""))[11:19]
    return f"Waiting: the provider's circuit breaker is open, next try at {back_at} UTC"


def running_told(phase: str, attempts: int) -> str:
    """Say what a running goal is doing."""
    if phase == "plan":
        return f"Planning: {plural(attempts, 'attempt')} so far"
    return {"do": "Running the plan", "check": "Checking the result"}.get(
        phase, "Deciding how to go on"
    )


def planning_told(outcome: str | None, made: str, wanted: str) -> str:
    """Say how planning went."""
    if outcome == "ok_first":
        return f"valid {wanted} at the first attempt"
    if outcome == "repaired":
        return f"valid {wanted} after a repair, {made}"
    if outcome == "stubbed":
        return f"no valid {wanted} after {made}, a stub plan stood in"
    return made


def steps_told(meta: Mapping[str, object] | None) -> str:
    """Say how the steps of the last run went, from `__meta__`."""
    stats = (meta or {}).get("stats")
    if not isinstance(stats, Mapping):
        return ""
    told = [f"{stats.get('ok', 0)} of {stats.get('total_steps', 0)} steps ok"]
    told += [f"{stats[key]} {key}" for key in ("failed", "skipped") if stats.get(key)]
    return "; " + ", ".join(told)

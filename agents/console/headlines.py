"""The first line of a goal's, a run's and a reported run's page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from agents.badges import run_badge
from diagnostics.figures import Tone, count, duration, plural

PLANNED = {"plan": "plan", "next_step": "next step", "actions": "list of actions"}
ENDED_WITHOUT_PLAN = {
    "stubbed": "no valid {wanted} after {attempts}; stub plan used",
    "degraded": "no valid {wanted} after {attempts}",
    "circuit_open": "the model's circuit breaker was open, no call was made",
    "provider_failed": "no answer from the provider in {attempts}",
    "budget_exhausted": "budget exhausted after {all_attempts}",
}


def goal_headline(
    *,
    status: str,
    outcome: str | None,
    phase: str,
    mode: str,
    attempts: int,
    longest: int,
    meta: Mapping[str, object] | None,
    evaluation: Mapping[str, object] | None = None,
    is_isolated: bool = False,
) -> str:
    """Say how the goal stands: how planning went, then how the steps went.

    `attempts` are those at all answers, `longest` the most at one of them.
    """
    all_attempts, wanted = plural(attempts, "attempt"), PLANNED.get(mode, mode)
    attempted = plural(longest, "attempt")
    steps = steps_words(meta)
    match status:
        case "queued":
            return queued_words(evaluation or {}, is_isolated=is_isolated)
        case "running":
            return running_words(phase, attempts)
        case "waiting_user":
            return "Waiting for an answer"
        case "cancelled":
            return f"Cancelled after {all_attempts}"
        case "completed":
            return f"Completed: {planning_words(outcome, attempted, wanted)}{steps}"
    if outcome == "budget_exhausted" and (evaluation or {}).get("spent") == "seconds":
        return f"Failed: timeout after {all_attempts}{steps}"
    if outcome in ENDED_WITHOUT_PLAN:
        known = {"attempts": attempted, "all_attempts": all_attempts, "wanted": wanted}
        words = ENDED_WITHOUT_PLAN[outcome].format(**known)
        return f"Degraded: {words}{steps if outcome == 'stubbed' else ''}"
    return f"Failed: {planning_words(outcome, attempted, wanted)}{steps}"


def queued_words(evaluation: Mapping[str, object], *, is_isolated: bool) -> str:
    if evaluation.get("reason") == "circuit_open":
        if is_isolated:
            return "Waiting: the model is isolated; close its circuit breaker to continue"
        return "Waiting: the model's circuit breaker is open"
    if "retry_at" in evaluation:
        return "Waiting: the provider asked to call again later"
    return "Queued: waiting for a worker"


def running_words(phase: str, attempts: int) -> str:
    if phase == "plan":
        return f"Planning: {plural(attempts, 'attempt')} so far"
    return {"do": "Running the plan", "check": "Checking the result"}.get(
        phase, "Deciding the next step"
    )


def planning_words(outcome: str | None, attempted: str, wanted: str) -> str:
    if outcome == "ok_first":
        return f"valid {wanted} at the first attempt"
    if outcome == "repaired":
        return f"valid {wanted}, recovered after {attempted}"
    if outcome == "stubbed":
        return f"no valid {wanted} after {attempted}, stub plan used"
    return attempted


def steps_words(meta: Mapping[str, object] | None) -> str:
    """Say how the steps of the last run went, from `__meta__`."""
    stats = (meta or {}).get("stats")
    if not isinstance(stats, Mapping):
        return ""
    parts = [f"{stats.get('ok', 0)} of {plural(stats.get('total_steps', 0), 'step')} ok"]
    parts += [f"{stats[key]} {key}" for key in ("failed", "skipped") if stats.get(key)]
    return "; " + ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Ending:
    kind: str
    reason: str | None = None
    status: str | None = None


def outside_headline(
    states: Sequence[str], endings: Sequence[Ending], attempts: int
) -> tuple[Tone, str]:
    """Say how a run stands by the states of its calls and its terminal events, in order.

    The last thing that is known decides: an agent may yet send more. `attempts` is the most that
    one answer took.
    """
    attempted = plural(attempts, "attempt")
    if degraded := [ending for ending in endings if ending.kind == "degraded"]:
        last = degraded[-1]
        reason = (last.reason or "degraded").replace("_", " ")
        if last.status == "stubbed":
            return "bad", f"Degraded after {attempted}, stub plan used: {reason}"
        return "bad", f"Degraded after {attempted}: {reason}"
    if any(ending.kind == "cancelled" for ending in endings):
        return "quiet", f"Cancelled after {attempted}" if states else "Cancelled"
    if not states:
        return "quiet", "No attempts reported"
    if states[-1] == "valid":
        return (
            "good",
            f"Recovered after {attempted}" if attempts > 1 else "Valid at the first attempt",
        )
    if states[-1] == "unchecked":
        return "quiet", f"Unchecked after {attempted}: nothing checked the answer"
    words = "the latest not valid" if "valid" in states else "none valid so far"
    return "warn", f"{attempted.capitalize()}, {words}"


_WORDS = {
    "COMPLETED": "Completed",
    "PARTIAL": "Partially completed",
    "FAILED": "Failed",
    "BLOCKED": "Blocked",
}


@dataclass(frozen=True, slots=True)
class StepCounts:
    """How many steps of a run stand where; `undecided` wait for a person."""

    total: int = 0
    ok: int = 0
    failed: int = 0
    skipped: int = 0
    running: int = 0
    undecided: int = 0

    @property
    def final(self) -> int:
        return self.ok + self.failed + self.skipped

    @property
    def pending(self) -> int:
        return self.total - self.final - self.running


def run_tone(state: str, task_status: str | None, counts: StepCounts) -> Tone:
    """Return the tone of a run: a step that waits for a person is a warning."""
    if counts.undecided and state == "ended":
        return "warn"
    return run_badge(state, task_status)[0]


def run_headline(
    state: str,
    task_status: str | None,
    counts: StepCounts,
    lasted: timedelta | None,
    refused: str = "",
) -> str:
    done = f"{count(counts.final)} of {plural(counts.total, 'step')}"
    if state == "poison":
        return f"Given up: the run crashed every worker (poison), {done} have results"
    if state == "queued":
        if refused:
            return f"Waiting: no worker accepts it, {refused}"
        return "Queued: waiting for a worker"
    if state == "running":
        return f"Running: {done} done, {count(counts.running)} running"
    took = "" if lasted is None else f" in {duration(lasted)}"
    ok = f"{count(counts.ok)} of {plural(counts.total, 'step')} ok"
    others = ((counts.failed, "failed"), (counts.skipped, "skipped"))
    parts = ", ".join([ok, *(f"{count(number)} {word}" for number, word in others if number)])
    words = f"{_WORDS.get(task_status or '', 'Ended')}: {parts}{took}"
    if counts.undecided:
        return f"{words}; {plural(counts.undecided, 'step')} needing a decision"
    return words

"""The first line of a run's page: one sentence, made of what is stored."""

from collections.abc import Mapping
from dataclasses import dataclass

from diagnostics.core.charts.mark import Tone
from diagnostics.core.wording import count, duration, plural

TONES: Mapping[str, Tone] = {
    "COMPLETED": "good",
    "PARTIAL": "warn",
    "FAILED": "bad",
    "BLOCKED": "bad",
    "queued": "quiet",
    "running": "live",
    "poison": "bad",
}
_WORDS = {
    "COMPLETED": "Completed",
    "PARTIAL": "Partly done",
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
        """How many have a result."""
        return self.ok + self.failed + self.skipped

    @property
    def pending(self) -> int:
        """How many have not begun."""
        return self.total - self.final - self.running


def run_tone(state: str, task_status: str | None, counts: StepCounts) -> Tone:
    """Give the tone of a run: a step that waits for a person is a warning."""
    if counts.undecided and state == "ended":
        return "warn"
    return TONES.get(task_status or state, "quiet")


def run_headline(
    state: str,
    task_status: str | None,
    counts: StepCounts,
    seconds: float | None,
    refused: str = "",
) -> str:
    """Say how the run stands, and how its steps went."""
    done = f"{count(counts.final)} of {plural(counts.total, 'step')}"
    if state == "poison":
        return f"Given up: the worker died of it again and again, {done} have results"
    if state == "queued":
        if refused:
            return f"Waiting: no worker takes it, {refused}"
        return "Queued: a worker takes it next"
    if state == "running":
        return f"Running: {done} done, {count(counts.running)} under way"
    took = "" if seconds is None else f" in {duration(seconds)}"
    told = f"{_WORDS.get(task_status or '', 'Ended')}: {_parts(counts)}{took}"
    if counts.undecided:
        return f"{told}; {plural(counts.undecided, 'step')} to be decided"
    return told


def _parts(counts: StepCounts) -> str:
    named = ((counts.failed, "failed"), (counts.skipped, "skipped"))
    not_ok = [f"{count(number)} {word}" for number, word in named if number]
    return ", ".join([f"{count(counts.ok)} of {plural(counts.total, 'step')} ok", *not_ok])

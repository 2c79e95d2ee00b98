"""What happened to a goal, in the order in which it happened."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from agents.badges import attempt_label, run_badge
from agents.console.differences import AnswerDifference, difference
from agents.console.sightings import Seen, Sighting
from agents.goals.models import Attempt
from diagnostics.failures.excerpt import excerpt
from diagnostics.store.models import Event
from diagnostics.web.charts.marks import Tone
from plans.models.run import Run

TOLD_EVENTS: dict[str, Tone] = {"degraded": "bad", "unknown_tool": "warn", "cancelled": "quiet"}
MOST_COMPARED = 20


@dataclass(frozen=True, slots=True)
class GoalMoment:
    """One thing that happened: `kind` names the partial that shows it."""

    kind: str
    at: datetime
    cycle: int
    tone: Tone
    label: str
    shown: Mapping[str, Any] = field(default_factory=dict)


def cycles_of(
    attempts: Sequence[Attempt], events: Sequence[Event], runs: Sequence[Run], sightings: Seen
) -> list[tuple[int, list[GoalMoment]]]:
    """Merge attempts, terminal events and runs into cycles, each in the order of time."""
    before = _before(attempts)
    moments = [
        moment
        for place, attempt in enumerate(attempts)
        for moment in _of_attempt(attempt, before.get(place), sightings)
    ]
    moments += [_of_event(event) for event in events if event.kind in TOLD_EVENTS]
    moments += [_of_run(run) for run in runs]
    moments.sort(key=lambda moment: (moment.cycle, moment.at))
    return [
        (cycle, list(those)) for cycle, those in groupby(moments, key=lambda moment: moment.cycle)
    ]


def _before(attempts: Sequence[Attempt]) -> dict[int, tuple[int, AnswerDifference]]:
    """Compare answers with the one before, of the same node and cycle; the first ones."""
    last: dict[tuple[int, str], Attempt] = {}
    differences: dict[int, tuple[int, AnswerDifference]] = {}
    for place, attempt in enumerate(attempts):
        key = (attempt.cycle, attempt.node)
        earlier = last.get(key)
        if earlier and earlier.preview and attempt.preview and len(differences) < MOST_COMPARED:
            compared = difference(earlier.preview, attempt.preview)
            differences[place] = (earlier.attempt, compared)
        last[key] = attempt
    return differences


def _of_attempt(
    attempt: Attempt, before: tuple[int, AnswerDifference] | None, sightings: Seen
) -> Iterator[GoalMoment]:
    if attempt.feedback or attempt.simplified:
        at, cycle = attempt.called_at, attempt.cycle
        yield GoalMoment("feedback", at, cycle, "quiet", "feedback", {"attempt": attempt})
    tone, label = attempt_label(attempt.state, attempt.error_type)
    # An agent's plain message is an error item too.
    faults = [e if isinstance(e, Mapping) else {"message": str(e)} for e in attempt.errors]
    key = (attempt.node, attempt.cycle, attempt.attempt)
    shown = {
        "attempt": attempt,
        "faults": faults,
        "repairs": attempt.repairs,
        "coerced": attempt.coerced,
        "excerpt": excerpt(attempt.preview, fault_spans(faults)) if attempt.preview else None,
        "compared_with": before[0] if before else None,
        "difference": before[1] if before else None,
        "sighting": sightings.get(key, Sighting()),
    }
    yield GoalMoment("attempt", attempt.called_at, attempt.cycle, tone, label, shown)


def fault_spans(faults: Iterable[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Return line and column of every fault that has them."""
    return [
        (fault["line"], fault.get("column") or 1)
        for fault in faults
        if isinstance(fault.get("line"), int)
    ]


def _of_event(event: Event) -> GoalMoment:
    tone = TOLD_EVENTS[event.kind]
    label = event.kind.replace("_", " ")
    return GoalMoment("event", event.occurred_at, event.cycle, tone, label, {"event": event})


def _of_run(run: Run) -> GoalMoment:
    tone, shown = run_badge(run.state, run.task_status)
    at = run.started_at or run.created_at
    return GoalMoment("run", at, run.cycle, tone, shown, {"run": run})

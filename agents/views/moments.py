"""What happened to a goal, in the order in which it happened."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from agents.core.badges import attempt_label
from agents.core.differences import Difference, difference
from agents.models import Attempt
from agents.views.sightings import Seen, Sighting, Told
from diagnostics.core.charts.mark import Tone
from diagnostics.core.excerpt import Excerpt, excerpt
from diagnostics.models import Event
from plans.models import Run

TOLD_EVENTS = ("degraded", "unknown_tool")
MOST_COMPARED = 20


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened: `kind` names the partial that shows it."""

    kind: str
    at: datetime
    cycle: int
    tone: Tone
    label: str
    shown: Mapping[str, Any] = field(default_factory=dict)


def cycles_of(
    attempts: Sequence[Attempt | Told],
    events: Sequence[Event],
    runs: Sequence[Run],
    seen: Seen,
) -> list[tuple[int, list[Moment]]]:
    """Merge attempts, terminal events and runs into cycles, each in the order of time."""
    before = _before(attempts)
    moments = [
        moment
        for place, attempt in enumerate(attempts)
        for moment in _of_attempt(attempt, before.get(place), seen)
    ]
    moments += [_of_event(event) for event in events if event.kind in TOLD_EVENTS]
    moments += [_of_run(run) for run in runs]
    moments.sort(key=lambda moment: (moment.cycle, moment.at))
    return [
        (cycle, list(those)) for cycle, those in groupby(moments, key=lambda moment: moment.cycle)
    ]


def _before(
    attempts: Sequence[Attempt | Told],
) -> dict[int, tuple[int, Difference]]:
    """Compare answers with the one before, of the same node and cycle; the first ones."""
    last: dict[tuple[int, str], Attempt | Told] = {}
    found: dict[int, tuple[int, Difference]] = {}
    for place, attempt in enumerate(attempts):
        key = (attempt.cycle, attempt.node)
        earlier = last.get(key)
        if earlier and earlier.preview and attempt.preview and len(found) < MOST_COMPARED:
            compared = difference(earlier.preview, attempt.preview)
            found[place] = (earlier.attempt, compared)
        last[key] = attempt
    return found


def _of_attempt(
    attempt: Attempt | Told, before: tuple[int, Difference] | None, seen: Seen
) -> Iterator[Moment]:
    if attempt.feedback or attempt.simplified:
        yield Moment(
            "feedback",
            attempt.called_at,
            attempt.cycle,
            "quiet",
            "feedback",
            {"attempt": attempt},
        )
    tone, label = attempt_label(attempt.state, attempt.error_type)
    faults = [_fault(error) for error in attempt.errors]
    key = (attempt.node, attempt.cycle, attempt.attempt)
    shown = {
        "attempt": attempt,
        "faults": faults,
        "repairs": attempt.repairs,
        "coerced": attempt.coerced,
        "excerpt": _excerpt(attempt, faults),
        "compared_with": before[0] if before else None,
        "difference": before[1] if before else None,
        "sighting": seen.get(key, Sighting()),
    }
    yield Moment("attempt", attempt.called_at, attempt.cycle, tone, label, shown)


def _fault(error: object) -> Mapping[str, Any]:
    """An error item as stored; an agent's plain message is one too."""
    return error if isinstance(error, Mapping) else {"message": str(error)}


def _excerpt(attempt: Attempt | Told, faults: Iterable[Mapping[str, Any]]) -> Excerpt | None:
    if not attempt.preview:
        return None
    places = [(fault.get("line"), fault.get("column")) for fault in faults]
    return excerpt(
        attempt.preview,
        [(line, column or 1) for line, column in places if isinstance(line, int)],
    )


def _of_event(event: Event) -> Moment:
    tone: Tone = "bad" if event.kind == "degraded" else "warn"
    return Moment(
        "event",
        event.occurred_at,
        event.cycle,
        tone,
        event.kind.replace("_", " "),
        {"event": event},
    )


def _of_run(run: Run) -> Moment:
    tones: dict[str | None, Tone] = {"COMPLETED": "good", "PARTIAL": "warn"}
    ended = run.task_status or (run.state if run.state == "poison" else None)
    tone: Tone = tones.get(ended, "bad") if ended else "live"
    return Moment(
        "run",
        run.started_at or run.created_at,
        run.cycle,
        tone,
        run.task_status or run.state,
        {"run": run},
    )

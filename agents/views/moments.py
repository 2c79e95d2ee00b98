"""What happened to a goal, in the order in which it happened."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from agents.core.badges import attempt_label
from agents.models import Attempt
from diagnostics.core.charts.mark import Tone
from diagnostics.core.excerpt import Excerpt, excerpt
from diagnostics.models import Event
from plans.models import Run


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
    attempts: Sequence[Attempt], events: Sequence[Event], runs: Sequence[Run]
) -> list[tuple[int, list[Moment]]]:
    """Merge attempts, terminal events and runs into cycles, each in the order of time."""
    moments = [moment for attempt in attempts for moment in _of_attempt(attempt)]
    moments += [_of_event(event) for event in events]
    moments += [_of_run(run) for run in runs]
    moments.sort(key=lambda moment: (moment.cycle, moment.at))
    return [
        (cycle, list(those))
        for cycle, those in groupby(moments, key=lambda moment: moment.cycle)
    ]


def _of_attempt(attempt: Attempt) -> Iterator[Moment]:
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
    shown = {
        "attempt": attempt,
        "faults": faults,
        "repairs": attempt.repairs,
        "coerced": attempt.coerced,
        "excerpt": _excerpt(attempt, faults),
    }
    yield Moment("attempt", attempt.called_at, attempt.cycle, tone, label, shown)


def _fault(error: object) -> Mapping[str, Any]:
    """An error item as stored; an agent's plain message is one too."""
    return error if isinstance(error, Mapping) else {"message": str(error)}


def _excerpt(attempt: Attempt, faults: Iterable[Mapping[str, Any]]) -> Excerpt | None:
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

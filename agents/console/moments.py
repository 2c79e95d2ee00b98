"""What happened to a goal, in the order in which it happened."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from agents.badges import attempt_label, run_badge
from agents.console.differences import AnswerDifference, difference
from agents.goals.events import STATE_OF
from agents.goals.models import Attempt
from agents.llm.provider import ANSWERERS
from diagnostics.failures.excerpt import excerpt
from diagnostics.failures.models import FailureGroup
from diagnostics.figures import Tone
from diagnostics.store.models import Event, EventPayload
from plans.models.run import Run

TOLD_EVENTS: dict[str, Tone] = {"degraded": "bad", "unknown_tool": "warn", "cancelled": "quiet"}
MOST_COMPARED = 20
COUNTED = ("latency_ms", "input_tokens", "output_tokens", "reasoning_tokens")


@dataclass(frozen=True, slots=True)
class GoalMoment:
    """One thing that happened: `kind` names the partial that shows it."""

    kind: str
    at: datetime
    cycle: int
    tone: Tone
    label: str
    shown: Mapping[str, Any] = field(default_factory=dict)


Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Sighting:
    event_id: UUID | None = None
    group_id: int | None = None
    seen: int = 0


Seen = Mapping[Key, Sighting]


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
    for event in events:
        if tone := TOLD_EVENTS.get(event.kind):
            label, shown = event.kind.replace("_", " "), {"event": event}
            moments.append(GoalMoment("event", event.occurred_at, event.cycle, tone, label, shown))
    for run in runs:
        at, badge = run.started_at or run.created_at, run_badge(run.state, run.task_status)
        moments.append(GoalMoment("run", at, run.cycle, *badge, {"run": run}))
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
    return [
        (fault["line"], fault.get("column") or 1)
        for fault in faults
        if isinstance(fault.get("line"), int)
    ]


def sightings_of(
    project_id: int, events: Iterable[Event], payloads: Mapping[UUID, EventPayload]
) -> dict[Key, Sighting]:
    """Return the events of attempts by (node, cycle, attempt), with their groups; one query."""
    prints = {
        event.event_id: payloads[event.event_id].fingerprint
        for event in events
        if event.event_id in payloads
    }
    wanted = {sightings for sightings in prints.values() if sightings is not None}
    groups = {
        fingerprint: (pk, seen)
        for fingerprint, pk, seen in FailureGroup.objects.filter(
            project_id=project_id, fingerprint__in=wanted
        ).values_list("fingerprint", "pk", "seen")
    }
    sightings = {}
    for event in events:
        if event.attempt is None or event.kind not in STATE_OF:
            continue
        print_of = prints.get(event.event_id)
        group_id, seen = groups.get(print_of, (None, 0)) if print_of else (None, 0)
        key = (event.node, event.cycle, event.attempt)
        sightings[key] = Sighting(event.event_id, group_id, seen)
    return sightings


def reported_attempts(
    events: Iterable[Event], payloads: Mapping[UUID, EventPayload]
) -> list[Attempt]:
    """Return the attempts that events tell of, in their order: rows that are stored nowhere."""
    return [
        _reported(event, payloads.get(event.event_id)) for event in events if event.kind in STATE_OF
    ]


def _reported(event: Event, payload: EventPayload | None) -> Attempt:
    same = ("node", "cycle", "provider", "model", "output_mode", "finish_reason")
    fields = {name: getattr(event, name) for name in (*same, *COUNTED, *ANSWERERS)}
    fields["max_output_tokens"] = payload.max_output_tokens if payload else None
    attempt = Attempt(
        attempt=event.attempt or 1,
        state="unchecked" if event.unchecked else STATE_OF[event.kind],
        called_at=event.occurred_at,
        error_type=event.parse_error_type or event.call_error_type,
        simplified=bool(event.is_simplified),
        **fields,
    )
    # The page names parts of itself after it.
    attempt.pk = str(event.event_id)
    if payload is not None:
        attempt.errors, attempt.preview = (
            payload.validation_errors,
            payload.raw_output_preview or "",
        )
        attempt.repairs, attempt.coerced = payload.repairs, payload.coerced
        attempt.temperature = payload.temperature
    return attempt

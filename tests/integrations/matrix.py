"""What every cell came to: compared with the truth, and printed as a table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from diagnostics.store.models import Event, EventPayload
from diagnostics.store.run_models import AgentRun, RunOutcome
from failsoft.events import EventKind
from tests.integrations.clients import CELLS, PROMPT_VERSION, SECRET, Client
from tests.integrations.provider import INPUT_TOKENS, MODEL, OUTPUT_TOKENS

RIGHT, LESS, IMPOSSIBLE, WRONG = "ok", "~", "-", "WRONG"


@dataclass(slots=True)
class Matrix:
    """Cells by client; what is wrong, or impossible, with its reason."""

    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    reasons: dict[str, None] = field(default_factory=dict)

    def note(self, client: Client, cell: str, faults: list[str]) -> None:
        """Write down a cell."""
        row = self.rows.setdefault(client.title, {})
        if faults:
            row[cell] = WRONG
            self.wrong += [f"{client.title} {cell}: {fault}" for fault in faults]
        elif (reason := client.impossible.get(cell)) is not None:
            row[cell] = IMPOSSIBLE
            self.reasons[f"{client.title} {cell}: {reason}"] = None
        elif reasons := client.reasons_for(cell):
            row[cell] = LESS
            self.reasons |= {f"{client.title} {cell}: {reason}": None for reason in reasons}
        else:
            row[cell] = RIGHT

    def note_untold(self, client: Client) -> None:
        """Write down what a client never tells."""
        for name, reason in client.untold.items():
            self.reasons[f"{client.title} {name}: {reason}"] = None

    def lines(self) -> Iterable[str]:
        """Yield the table, then the reasons, then what is wrong."""
        width = max((len(title) for title in self.rows), default=0)
        yield " ".join([" " * width, *CELLS])
        for title, row in self.rows.items():
            marks = [f"{row.get(cell, ''):>{len(cell)}}" for cell in CELLS]
            yield " ".join([f"{title:<{width}}", *marks])
        yield ""
        yield from self.reasons
        yield from self.wrong


def faults_of(client: Client, cell: str, events: list[Event], requests: int) -> list[str]:
    """Compare the events of a cell with those that are true of it."""
    expected = client.expected(cell)
    if cell in client.impossible and len(events) == requests:
        return []
    if len(events) != requests or len(events) != len(expected):
        kinds = [f"{event.kind} {event.parse_error_type or ''}".strip() for event in events]
        return [f"{len(events)} events {kinds} of {requests} requests, {len(expected)} expected"]
    faults = []
    not_compared = {"reason", *client.untold}
    run = {"outcome": outcome_of(expected).value}
    for attempt, (event, true) in enumerate(zip(events, expected, strict=True), 1):
        told = facts_of(event)
        truth = {**common_truth(client, true), **run, "attempt": attempt, **true}
        for name, value in truth.items():
            if name not in not_compared and not _holds(name, value, told.get(name)):
                faults.append(f"{name} is {told[name]!r}, not {value!r}")
    return faults


def outcome_of(expected: list[dict[str, Any]]) -> RunOutcome:
    """Return how a run of these calls ended."""
    if expected[-1]["kind"] != EventKind.SUCCEEDED:
        return RunOutcome.DEGRADED
    return RunOutcome.RECOVERED if len(expected) > 1 else RunOutcome.OK_FIRST


def common_truth(client: Client, true: Mapping[str, Any]) -> dict[str, Any]:
    """Return what holds for every event of a client."""
    is_answered = true["kind"] != EventKind.PROVIDER_ERROR
    return {
        "node": client.node,
        "provider": client.provider,
        "model": MODEL,
        "prompt_version": PROMPT_VERSION,
        "latency": True,
        "input_tokens": INPUT_TOKENS if is_answered else None,
        "output_tokens": OUTPUT_TOKENS if is_answered else None,
    }


def facts_of(event: Event) -> dict[str, Any]:
    """Return what an event says, under the names of the book of answers."""
    payload = EventPayload.objects.filter(event_id=event.event_id).first()
    places = payload.validation_errors if payload is not None else []
    place = places[0] if places else {}
    run = AgentRun.objects.get(project=event.project_id, correlation_id=event.correlation_id)
    return {
        "kind": event.kind,
        "error": event.parse_error_type,
        "call_error": event.call_error_type,
        "path": place.get("path"),
        "line": place.get("line"),
        "column": place.get("column"),
        "preview": (payload.raw_output_preview if payload is not None else None) or "",
        "repairs": [repair["kind"] for repair in payload.repairs] if payload is not None else [],
        "attempt": event.attempt,
        "outcome": run.outcome,
        "node": event.node,
        "provider": event.provider,
        "model": event.model,
        "prompt_version": event.prompt_version,
        "latency": event.latency_ms is not None,
        "input_tokens": event.input_tokens,
        "output_tokens": event.output_tokens,
    }


def _holds(name: str, value: Any, told: Any) -> bool:
    if name == "preview":
        return value in told and SECRET not in told
    # TOML has no null: false says that nothing is told.
    return bool(told == value) or (value is False and told is None)

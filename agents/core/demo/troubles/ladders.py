"""Drawn runs told in full: what each call was answered, word for word."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from random import Random

from agents.core.demo.cast import OPERATIONS, SUPPORT, Line
from agents.core.demo.incidents import Odds
from agents.core.demo.ladders import (
    SCENARIOS,
    SCHEMA_OF_NODE,
    Call,
    Ladder,
    Repertoire,
    answer_call,
    lost_call,
    repertoire_of,
)
from agents.core.demo.traffic import MISSPELLED, PAUSE
from agents.core.demo.troubles.drawing import DrawnRun, Incident
from diagnostics.core.events import CallErrorType, ParseErrorType
from diagnostics.core.verdict.cells import Place

LOST: Mapping[str, tuple[CallErrorType, int]] = {
    "call_timeout": (CallErrorType.TIMEOUT, 30_000),
    "call_provider_error": (CallErrorType.PROVIDER_ERROR, 2_400),
    "call_rate_limited": (CallErrorType.RATE_LIMITED, 300),
}
REASONS = {CallErrorType.TIMEOUT: "timeout"}
LATENCY_MS = {"plan": 2_100, "next_step": 1_000}
TOKENS = {"plan": 310, "next_step": 120}
NOTHING_USUAL = (0.0, 0.0)


def ladders_of(incident: Incident, random: Random) -> Iterator[Ladder]:
    """Tell every run of an incident, in the order in which they began."""
    repertoires = {
        source: repertoire_of(scenarios, random) for source, scenarios in SCENARIOS.items()
    }
    for number, run in enumerate(incident.runs()):
        source = OPERATIONS if run.place.source == OPERATIONS else SUPPORT
        reference = _reference(incident, number)
        yield _ladder(run, reference, repertoires[source], random)


def _reference(incident: Incident, number: int) -> str:
    parts = f"{incident.kind} {incident.seed} {incident.now.isoformat()} {number}"
    return f"demo-{sha256(parts.encode()).hexdigest()[:10]}"


def _line(place: Place) -> Line:
    return Line(
        place.provider or "",
        place.model or "",
        place.node,
        0.0,
        *NOTHING_USUAL,
        LATENCY_MS[place.node],
        TOKENS[place.node],
        place.source or "",
    )


def _ladder(run: DrawnRun, reference: str, repertoire: Repertoire, random: Random) -> Ladder:
    line, place = _line(run.place), run.place
    calls: list[Call] = []
    for number, kind in enumerate(run.calls, start=1):
        begun = calls[-1].ended_at + PAUSE if calls else run.at
        if kind is not None and kind in LOST:
            error_type, took = LOST[kind]
            calls.append(lost_call(line, number, error_type, begun, took))
            continue
        schema = SCHEMA_OF_NODE[place.node]
        if kind is None:
            written = repertoire.pick_good(schema, random)
        else:
            odds = Odds(0.0, 0.0, {ParseErrorType(kind): 1.0})
            written = repertoire.pick_spoiled(schema, odds, random)
        calls.append(answer_call(line, number, written, begun, random))
    return Ladder(
        correlation_id=reference,
        line=line,
        environment=place.environment or "",
        prompt_version=place.prompt_version or "",
        release=place.release or "",
        cycle=1,
        calls=tuple(calls),
        reason=_reason(calls[-1], place) if run.is_degraded else None,
        unknown_tool=random.choice(MISSPELLED) if run.has_unknown_tool else None,
        schema_version=place.schema_version or "1",
    )


def _reason(last: Call, place: Place) -> str:
    if last.error_type is None:
        return f"{place.node}_parse_failed"
    return REASONS.get(last.error_type, "provider_failed")

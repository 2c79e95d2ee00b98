"""Targets of the parse lab, and the replay of a failure's stored samples."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.lab.parse_lab import ParseTarget, Reading, Settings, read_answer
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.failures.groups import LISTED_SAMPLES, Sample, samples_of
from diagnostics.failures.models import FailureGroup
from diagnostics.ingest.agent_schemas import current_schemas
from diagnostics.ingest.schemas import SchemaFaultError, read_schema
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event, EventPayload
from failsoft.actions.entries import TOOLSETS
from failsoft.json_values import clean_text
from failsoft.redaction.pipeline import LONGEST_MARKER, PREVIEW_BYTES
from failsoft.retry.judging import DECISION, NEXT_STEP, PLAN

NONE, PASTED = "none", "pasted"
OURS: Mapping[str, ParseTarget] = {
    NONE: ParseTarget("any object or array"),
    "plan": ParseTarget("a plan (PlanPayload)", judge=PLAN),
    "next_step": ParseTarget("a next step (NextStepProposal)", judge=NEXT_STEP),
    "decision": ParseTarget("a completion decision", judge=DECISION),
    **{
        f"actions:{name}": ParseTarget(f"tool calls of {name}", toolset=toolset)
        for name, toolset in TOOLSETS.items()
    },
}
OF_OUR_SCHEMAS = {"PlanPayload": "plan", "NextStepProposal": "next_step"}
NODE = "node:"
MOST_NODES = 200


class UnknownTargetError(ValueError):
    """there is no such schema in this project"""

    def __init__(self) -> None:
        super().__init__(UnknownTargetError.__doc__)


def targets_of(project_id: int) -> list[tuple[str, str]]:
    """Return every schema with its label: ours, the agents' own, a pasted one."""
    own = current_schemas(project_id).values_list("node", "version")[:MOST_NODES]
    return [
        *((key, target.label) for key, target in OURS.items()),
        *((f"{NODE}{node}", f"{node}, version {version}") for node, version in own),
        (PASTED, "a JSON Schema that you paste"),
    ]


def find_target(project_id: int, key: str, pasted: object = None) -> ParseTarget:
    """Return a target by its key; `pasted` is the JSON Schema of the key `pasted`.

    Raises UnknownTargetError and SchemaFaultError.
    """
    if key == PASTED:
        return ParseTarget("the pasted schema", schema=read_schema(pasted))
    if key in OURS:
        return OURS[key]
    row = current_schemas(project_id).filter(node=clean_text(key.removeprefix(NODE))).first()
    if not key.startswith(NODE) or row is None:
        raise UnknownTargetError
    return ParseTarget(f"{row.node} {row.version}", schema=read_schema(row.json_schema))


def read_pasted(text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaFaultError("", "json", "expected a JSON Schema as JSON") from error


def describe_refusal(error: ValueError) -> str:
    if isinstance(error, SchemaFaultError):
        place = error.path or "the schema"
        return f"The pasted schema is refused at {place}: {error.message}."
    return f"{str(error).capitalize()}."


def key_for(project_id: int, schema: str | None, node: str) -> str:
    """Return the target that a failure was checked against; `none` if it is unknown."""
    if schema in OF_OUR_SCHEMAS:
        return OF_OUR_SCHEMAS[schema]
    known = current_schemas(project_id).filter(node=node).exists()
    return f"{NODE}{node}" if known else NONE


def event_of(project_id: int, event_id: str) -> Sample | None:
    """Return a stored failure with its details; None if there is none."""
    payload = EventPayload.objects.filter(project_id=project_id, event_id=event_id).first()
    if payload is None:
        return None
    event = Event.objects.filter(
        project_id=project_id, event_id=payload.event_id, occurred_at=payload.occurred_at
    ).first()
    return None if event is None else (event, payload)


@dataclass(frozen=True, slots=True)
class Replayed:
    event: Event
    text: str
    was: str
    is_cut: bool
    reading: Reading


@dataclass(frozen=True, slots=True)
class Replay:
    """How many samples of a failure would be recovered; cut ones are counted separately."""

    rows: Sequence[Replayed]
    without_text: int

    @property
    def whole(self) -> Sequence[Replayed]:
        return [row for row in self.rows if not row.is_cut]

    @property
    def total(self) -> int:
        return len(self.whole)

    @property
    def recovered(self) -> int:
        return sum(row.reading.ok for row in self.whole)

    @property
    def cut(self) -> int:
        """How many samples may have been cut when they were stored."""
        return len(self.rows) - self.total

    @property
    def cut_recovered(self) -> int:
        return sum(row.reading.ok for row in self.rows) - self.recovered

    @property
    def share(self) -> float | None:
        return self.recovered / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float]:
        return wilson_interval(self.recovered, self.total)


def replay_group(
    group: FailureGroup,
    since: datetime,
    until: datetime,
    target: ParseTarget,
    settings: Settings,
    selection: Selection | None = None,
) -> Replay:
    """Parse a failure's latest 200 samples of a window with a target and settings.

    Previews are stored redacted and cut at 8 KiB, and parsed as they are.
    """
    samples, _ = samples_of(group, since, until, LISTED_SAMPLES, selection=selection)
    rows = []
    for event, payload in samples:
        text = payload.raw_output_preview
        if text is not None:
            reading = read_answer(text, target, settings, event.finish_reason)
            was = event.parse_error_type or event.call_error_type or event.kind
            # A redaction marker that did not fit was dropped.
            is_cut = len(text.encode()) > PREVIEW_BYTES - LONGEST_MARKER
            rows.append(Replayed(event, text, was, is_cut, reading))
    return Replay(rows, len(samples) - len(rows))

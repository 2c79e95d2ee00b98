"""What the parse lab can check against, and what a group's stored samples would have been."""

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
from diagnostics.ingest.models import AgentSchema
from diagnostics.ingest.schemas import SchemaFaultError, read_schema
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event, EventPayload
from failsoft.actions.entries import TOOLSETS
from failsoft.redaction.preview import LONGEST_MARKER, PREVIEW_BYTES
from failsoft.retry.answers import DECISION, NEXT_STEP, PLAN

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
    """Return every schema to choose, with its label: ours, the agents' own, a pasted one."""
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
    found = current_schemas(project_id).filter(node=key.removeprefix(NODE)).first()
    if not key.startswith(NODE) or found is None:
        raise UnknownTargetError
    return _target_of(found)


def read_pasted(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Read the text of a JSON Schema; raises SchemaFaultError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaFaultError("", "json", "expected a JSON Schema as JSON") from error


def describe_refusal(error: ValueError) -> str:
    """Say why a target cannot be had."""
    if isinstance(error, SchemaFaultError):
        where = error.path or "the schema"
        return f"The pasted schema is refused at {where}: {error.message}."
    return f"{str(error).capitalize()}."


def key_for(project_id: int, schema: str | None, node: str) -> str:
    """Return the target that a failure was checked against, as far as it is known here."""
    if schema in OF_OUR_SCHEMAS:
        return OF_OUR_SCHEMAS[schema]
    known = current_schemas(project_id).filter(node=node).exists()
    return f"{NODE}{node}" if known else NONE


def event_of(project_id: int, event_id: str) -> Sample | None:
    """Return a stored failure with its details, None where there is none."""
    payload = EventPayload.objects.filter(project_id=project_id, event_id=event_id).first()
    if payload is None:
        return None
    event = Event.objects.filter(
        project_id=project_id, event_id=payload.event_id, occurred_at=payload.occurred_at
    ).first()
    return None if event is None else (event, payload)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One sample, read anew."""

    event: Event
    text: str
    was: str
    is_cut: bool
    reading: Reading


@dataclass(frozen=True, slots=True)
class Replay:
    """What would have been recovered of a group's samples; cut ones are counted apart."""

    rows: Sequence[Replayed]
    without_text: int

    @property
    def whole(self) -> Sequence[Replayed]:
        """The samples that were kept whole."""
        return [row for row in self.rows if not row.is_cut]

    @property
    def total(self) -> int:
        """How many samples were kept whole."""
        return len(self.whole)

    @property
    def recovered(self) -> int:
        """Of the whole ones."""
        return sum(row.reading.ok for row in self.whole)

    @property
    def cut(self) -> int:
        """How many samples may have lost their end when they were kept."""
        return len(self.rows) - self.total

    @property
    def cut_recovered(self) -> int:
        """Of the cut ones."""
        return sum(row.reading.ok for row in self.rows) - self.recovered

    @property
    def share(self) -> float | None:
        """Recovered of the whole ones."""
        return self.recovered / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share."""
        return wilson_interval(self.recovered, self.total)


def replay_group(
    group: FailureGroup,
    since: datetime,
    until: datetime,
    target: ParseTarget,
    settings: Settings,
    selection: Selection | None = None,
) -> Replay:
    """Read a group's latest 200 samples of a window against a target, under settings.

    Previews are redacted and cut at 8 KiB: what is read is what was kept.
    """
    samples, _ = samples_of(group, since, until, LISTED_SAMPLES, selection=selection)
    rows = [
        _replay(sample, target, settings)
        for sample in samples
        if sample[1].raw_output_preview is not None
    ]
    return Replay(rows, len(samples) - len(rows))


def _replay(sample: Sample, target: ParseTarget, settings: Settings) -> Replayed:
    event, payload = sample
    text = payload.raw_output_preview or ""
    reading = read_answer(text, target, settings, event.finish_reason)
    was = event.parse_error_type or event.call_error_type or event.kind
    # A marker that did not fit was dropped whole.
    is_cut = len(text.encode()) > PREVIEW_BYTES - LONGEST_MARKER
    return Replayed(event, text, was, is_cut, reading)


def _target_of(row: AgentSchema) -> ParseTarget:
    return ParseTarget(f"{row.node} {row.version}", schema=read_schema(row.json_schema))

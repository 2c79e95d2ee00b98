"""Langfuse's exports: an observation a record, as the API, the console or a bucket has it.

Names are compared without regard to how they are written: `traceId`, `trace_id`, `Trace ID`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from diagnostics.ingest.exports.values import (
    Values,
    flat,
    known_of,
    read_time,
    span_id_of,
    trace_id_of,
)
from diagnostics.ingest.otlp.attributes import decoded
from diagnostics.ingest.otlp.langfuse import ERROR_LEVEL, OBSERVATION
from diagnostics.ingest.otlp.telemetry import Span

NO_LETTER = re.compile(r"[^a-z0-9]")
SCOPE = "langfuse-export"
# What Langfuse calls the environment of those who name none.
UNNAMED = "default"
TOKENS = {
    "input": ("inputtokens", "inputusage", "prompttokens", "usageinput"),
    "output": ("outputtokens", "outputusage", "completiontokens", "usageoutput"),
}
METADATA = ("finish_reason", "langgraph_node")


def is_observation(record: Mapping[str, Any]) -> bool:
    """Whether a record is an observation, or a trace that holds some."""
    names = {_plain(name) for name in record}
    return "observations" in names or {"traceid", "type", "starttime"} <= names


def read_record(record: Mapping[str, Any]) -> Iterator[Span]:
    """Give the span of an observation, or those of a trace's; ValueError where it is none."""
    told = {_plain(name): value for name, value in record.items()}
    if isinstance(told.get("observations"), list):
        for one in told["observations"]:
            if isinstance(one, dict):
                yield from read_record({"traceId": told.get("id"), **_context(told), **one})
        return
    if not (told.get("id") and told.get("traceid")):
        raise ValueError("an observation needs an id and a traceId")
    yield _span_of(told)


def _context(trace: Values) -> Values:
    names = ("environment", "release", "sessionid")
    return {name: trace[name] for name in names if trace.get(name)}


def _span_of(told: Values) -> Span:
    trace_id, started_ns = trace_id_of(str(told["traceid"])), read_time(told.get("starttime"))
    metadata = decoded(told.get("metadata"))
    metadata = metadata if isinstance(metadata, dict) else {}
    attributes = known_of({**_beneath(metadata, "attributes"), **dict(_attributes(told, metadata))})
    if trace_id != str(told["traceid"]):
        # People look for the id that they know.
        attributes.setdefault("failsoft.correlation_id", str(told["traceid"]))
    return Span(
        trace_id=trace_id,
        span_id=span_id_of(str(told["id"])),
        name=str(told.get("name") or ""),
        started_ns=started_ns,
        ended_ns=max(read_time(told.get("endtime")), started_ns),
        resource=known_of(_beneath(metadata, "resourceAttributes")),
        attributes=attributes,
        is_error=told.get("level") == ERROR_LEVEL,
        parent_id=span_id_of(str(told.get("parentobservationid") or "")),
        scope=SCOPE,
    )


def _beneath(metadata: Values, name: str) -> dict[str, Any]:
    """Return what the span told before Langfuse read it: kept in the metadata."""
    found = decoded(metadata.get(name))
    return dict(flat(found)) if isinstance(found, dict) else {}


def _attributes(told: Values, metadata: Values) -> Iterator[tuple[str, Any]]:
    kind = str(told.get("type") or "").lower()
    yield f"{OBSERVATION}type", kind
    if kind == "agent":
        yield "openinference.span.kind", "AGENT"
    yield f"{OBSERVATION}model.name", told.get("model") or told.get("providedmodelname")
    for name, key in (
        ("modelparameters", "model.parameters"),
        ("output", "output"),
        ("level", "level"),
        ("statusmessage", "status_message"),
        ("promptversion", "prompt.version"),
    ):
        yield f"{OBSERVATION}{key}", _written(told.get(name))
    yield f"{OBSERVATION}usage_details", json.dumps(_usage(told))
    for name in METADATA:
        yield f"{OBSERVATION}metadata.{name}", _written(metadata.get(name))
    if told.get("environment") != UNNAMED:
        yield "langfuse.environment", told.get("environment")
    yield "langfuse.release", told.get("release")
    yield "langfuse.session.id", told.get("sessionid")


def _usage(told: Values) -> Values:
    for name in ("usagedetails", "usage"):
        found = decoded(told.get(name))
        if isinstance(found, dict) and found:
            return found
    numbers = {
        part: next((told[name] for name in names if told.get(name) not in (None, "")), None)
        for part, names in TOKENS.items()
    }
    return {part: number for part, number in numbers.items() if number is not None}


def _written(value: object) -> object:
    """Write what is no text as its attribute would be: JSON."""
    if value in (None, ""):
        return None
    is_plain = isinstance(value, str | int) and not isinstance(value, bool)
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _plain(name: str) -> str:
    return NO_LETTER.sub("", name.lower())

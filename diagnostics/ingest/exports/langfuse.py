"""Langfuse's exports: one observation per record, from the API, the console or a bucket.

Names are compared regardless of case and separators: `traceId`, `trace_id`, `Trace ID`.
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
from diagnostics.ingest.otlp.attributes import ERROR_LEVEL, OBSERVATION, decoded
from diagnostics.ingest.otlp.telemetry import Span, UnreadItem

NO_LETTER = re.compile(r"[^a-z0-9]")
SCOPE = "langfuse-export"
# Langfuse's name for the environment if none is set.
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


def read_record(record: Mapping[str, Any]) -> Iterator[Span | UnreadItem]:
    """Yield the span of an observation, or the spans of a trace; raises ValueError otherwise."""
    values = {_plain(name): value for name, value in record.items()}
    if isinstance(values.get("observations"), list):
        shared = ("environment", "release", "sessionid")
        context = {name: values[name] for name in shared if values.get(name)}
        for observation in values["observations"]:
            if isinstance(observation, dict):
                inner = {"traceId": values.get("id"), **context, **observation}
                try:
                    yield from read_record(inner)
                except ValueError as error:
                    yield UnreadItem(str(error))
        return
    if not (values.get("id") and values.get("traceid")):
        raise ValueError("an observation needs an id and a traceId")
    yield _span_of(values)


def _span_of(values: Values) -> Span:
    trace_id, started_ns = trace_id_of(str(values["traceid"])), read_time(values.get("starttime"))
    metadata = decoded(values.get("metadata"))
    metadata = metadata if isinstance(metadata, dict) else {}
    attributes = known_of(
        {**_beneath(metadata, "attributes"), **dict(_attributes(values, metadata))}
    )
    if trace_id != str(values["traceid"]):
        # Users search for the original id.
        attributes.setdefault("failsoft.correlation_id", str(values["traceid"]))
    return Span(
        trace_id=trace_id,
        span_id=span_id_of(str(values["id"])),
        name=str(values.get("name") or ""),
        started_ns=started_ns,
        ended_ns=max(read_time(values.get("endtime")), started_ns),
        resource=known_of(_beneath(metadata, "resourceAttributes")),
        attributes=attributes,
        is_error=values.get("level") == ERROR_LEVEL,
        parent_id=span_id_of(str(values.get("parentobservationid") or "")),
        scope=SCOPE,
    )


def _beneath(metadata: Values, name: str) -> dict[str, Any]:
    """Return the original attributes of the span, which Langfuse keeps in the metadata."""
    nested = decoded(metadata.get(name))
    return dict(flat(nested)) if isinstance(nested, dict) else {}


def _attributes(values: Values, metadata: Values) -> Iterator[tuple[str, Any]]:
    kind = str(values.get("type") or "").lower()
    yield f"{OBSERVATION}type", kind
    if kind == "agent":
        yield "openinference.span.kind", "AGENT"
    yield f"{OBSERVATION}model.name", values.get("model") or values.get("providedmodelname")
    for name, key in (
        ("modelparameters", "model.parameters"),
        ("output", "output"),
        ("level", "level"),
        ("statusmessage", "status_message"),
        ("promptversion", "prompt.version"),
    ):
        yield f"{OBSERVATION}{key}", _attribute_value(values.get(name))
    yield f"{OBSERVATION}usage_details", json.dumps(_usage(values))
    for name in METADATA:
        yield f"{OBSERVATION}metadata.{name}", _attribute_value(metadata.get(name))
    if values.get("environment") != UNNAMED:
        yield "langfuse.environment", values.get("environment")
    yield "langfuse.release", values.get("release")
    yield "langfuse.session.id", values.get("sessionid")


def _usage(values: Values) -> Values:
    for name in ("usagedetails", "usage"):
        usage = decoded(values.get(name))
        if isinstance(usage, dict) and usage:
            return usage
    numbers = {
        part: next((values[name] for name in names if values.get(name) not in (None, "")), None)
        for part, names in TOKENS.items()
    }
    return {part: number for part, number in numbers.items() if number is not None}


def _attribute_value(value: object) -> object:
    """Return a value as an attribute: JSON unless it is a text or an integer."""
    if value in (None, ""):
        return None
    is_plain = isinstance(value, str | int) and not isinstance(value, bool)
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _plain(name: str) -> str:
    return NO_LETTER.sub("", name.lower())

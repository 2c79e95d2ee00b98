"""Items in OTLP's JSON encoding: hex ids, lower camel case, unknown fields passed over."""

import re
from collections.abc import Iterable, Iterator, Mapping
from math import inf, nan
from typing import Any, Never

import jiter

from diagnostics.ingest.otlp.attributes import is_known
from diagnostics.ingest.otlp.telemetry import (
    MAX_ITEMS,
    Attributes,
    LogRecord,
    MalformedError,
    Span,
    SpanEvent,
    TooManyError,
    TooManyValuesError,
    Value,
    ValueBudget,
)
from failsoft.json_values import mend_surrogates

MAX_EVENTS = 64
MAX_BRACKETS = 300_000
HEX = re.compile(r"(?:[0-9a-f]{2})*")
DECIMAL = re.compile(r"-?[0-9]{1,20}")
ERROR_CODES = (2, "STATUS_CODE_ERROR")
NUMBERS_IN_WORDS = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}
Json = Mapping[str, Any]


def read_spans(body: bytes) -> Iterator[Span | None]:
    """Read an ExportTraceServiceRequest; None stands for a span beyond the bounds.

    Raises MalformedError with the place of the first fault, and TooManyError.
    """
    resources = _JsonResources()
    for resource, item, at in _items(body, "resourceSpans", "scopeSpans", "spans"):
        try:
            yield _span(item, at, resources.read(resource))
        except TooManyValuesError:
            yield None


def read_logs(body: bytes) -> Iterator[LogRecord | None]:
    """Read an ExportLogsServiceRequest; as `read_spans`."""
    resources = _JsonResources()
    for resource, item, at in _items(body, "resourceLogs", "scopeLogs", "logRecords"):
        try:
            yield _log_record(item, at, resources.read(resource))
        except TooManyValuesError:
            yield None


class _JsonResources:
    """Reads a resource once for all items that follow each other."""

    def __init__(self) -> None:
        self._json: Json | None = None
        self._attributes: Attributes = {}

    def read(self, resource: Json) -> Attributes:
        if resource is not self._json:
            self._attributes, _ = _attributes(resource, "/resource", ValueBudget())
            self._json = resource
        return self._attributes


def _items(body: bytes, outer: str, middle: str, inner: str) -> Iterator[tuple[Json, Json, str]]:
    document = _parse(body)
    if not isinstance(document, dict):
        _refuse("", "an object")
    count = 0
    for resources, outer_at in _objects(document, outer, ""):
        resource = _object(resources, "resource", outer_at)
        for scope, middle_at in _objects(resources, middle, outer_at):
            for item, at in _objects(scope, inner, middle_at):
                count += 1
                if count > MAX_ITEMS:
                    raise TooManyError(TooManyError.__doc__)
                yield resource, item, at


def _parse(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    # Each is an object of 56 bytes at least, made of one byte or two.
    if body.count(b"{") + body.count(b"[") > MAX_BRACKETS:
        raise TooManyError(TooManyError.__doc__)
    try:
        return jiter.from_json(mend_surrogates(body), allow_inf_nan=False)
    except ValueError as error:
        raise MalformedError(f"not JSON: {error}") from error


def _span(item: Json, at: str, resource: Attributes) -> Span:
    budget = ValueBudget()
    attributes, dropped = _attributes(item, at, budget)
    events = []
    for event, event_at in _objects(item, "events", at)[:MAX_EVENTS]:
        told, more = _attributes(event, event_at, budget)
        dropped += more
        events.append(SpanEvent(_text(event, "name", event_at), told))
    return Span(
        trace_id=_identifier(item, "traceId", at),
        span_id=_identifier(item, "spanId", at),
        name=_text(item, "name", at),
        started_ns=_number(item, "startTimeUnixNano", at),
        ended_ns=_number(item, "endTimeUnixNano", at),
        resource=resource,
        attributes=attributes,
        is_error=_object(item, "status", at).get("code") in ERROR_CODES,
        events=tuple(events),
        dropped=dropped,
    )


def _log_record(item: Json, at: str, resource: Attributes) -> LogRecord:
    budget = ValueBudget()
    attributes, dropped = _attributes(item, at, budget)
    moment = _number(item, "timeUnixNano", at)
    return LogRecord(
        trace_id=_identifier(item, "traceId", at),
        span_id=_identifier(item, "spanId", at),
        name=_text(item, "eventName", at),
        at_ns=moment or _number(item, "observedTimeUnixNano", at),
        resource=resource,
        attributes=attributes,
        body=_value(_object(item, "body", at), f"{at}/body", budget),
        dropped=dropped,
    )


def _attributes(holder: Json, at: str, budget: ValueBudget) -> tuple[Attributes, int]:
    """Return what is known, and how many were dropped."""
    found: dict[str, Value] = {}
    dropped = 0
    for pair, pair_at in _objects(holder, "attributes", at):
        key = _text(pair, "key", pair_at)
        if is_known(key):
            value = _object(pair, "value", pair_at)
            found[key] = _value(value, f"{pair_at}/value", budget)
        else:
            dropped += 1
    return found, dropped


def _value(packed: Json, at: str, budget: ValueBudget) -> Value:
    budget.spend()
    for name, value in packed.items():
        if name == "stringValue":
            return _text(packed, name, at)
        if name == "boolValue":
            return value if isinstance(value, bool) else _refuse(f"{at}/{name}", "a boolean")
        if name == "intValue":
            return _number(packed, name, at)
        if name == "doubleValue":
            return _double(value, f"{at}/{name}")
        if name == "arrayValue":
            values = _objects(_object(packed, name, at), "values", f"{at}/{name}")
            return [_value(inner, inner_at, budget) for inner, inner_at in values]
        if name == "kvlistValue":
            pairs = _objects(_object(packed, name, at), "values", f"{at}/{name}")
            return _mapping(pairs, budget)
    return None


def _mapping(pairs: Iterable[tuple[Json, str]], budget: ValueBudget) -> dict[str, Value]:
    return {
        _text(pair, "key", at): _value(_object(pair, "value", at), f"{at}/value", budget)
        for pair, at in pairs
    }


def _double(value: object, at: str) -> float:
    if isinstance(value, str) and value in NUMBERS_IN_WORDS:
        return NUMBERS_IN_WORDS[value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        # An integer may be too large for a float.
        return float(value) if abs(value) < 1e300 else inf
    return _refuse(at, "a number")


def _objects(holder: Json, name: str, at: str) -> list[tuple[Json, str]]:
    found = holder.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        _refuse(f"{at}/{name}", "a list")
    for index, item in enumerate(found):
        if not isinstance(item, dict):
            _refuse(f"{at}/{name}/{index}", "an object")
    return [(item, f"{at}/{name}/{index}") for index, item in enumerate(found)]


def _object(holder: Json, name: str, at: str) -> Json:
    found = holder.get(name)
    if found is None:
        return {}
    return found if isinstance(found, dict) else _refuse(f"{at}/{name}", "an object")


def _text(holder: Json, name: str, at: str) -> str:
    found = holder.get(name)
    if found is None:
        return ""
    return found if isinstance(found, str) else _refuse(f"{at}/{name}", "a string")


def _identifier(holder: Json, name: str, at: str) -> str:
    found = _text(holder, name, at).lower()
    return found if HEX.fullmatch(found) else _refuse(f"{at}/{name}", "hex digits")


def _number(holder: Json, name: str, at: str) -> int:
    found = holder.get(name)
    if found is None:
        return 0
    if isinstance(found, str) and DECIMAL.fullmatch(found):
        return int(found)
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    return _refuse(f"{at}/{name}", "an integer")


def _refuse(at: str, expected: str) -> Never:
    raise MalformedError(f"{at or '/'}: expected {expected}")

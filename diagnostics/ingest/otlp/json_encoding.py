"""Export requests in JSON with protobuf's names: hex ids, lower camel case."""

import re
from collections.abc import Callable, Iterator, Mapping
from math import inf, nan
from typing import Any, Never, TypeAlias

import jiter

from diagnostics.ingest.otlp.reading import Groups, read_groups, read_log_record, read_span
from diagnostics.ingest.otlp.telemetry import (
    MAX_ITEMS,
    LogRecord,
    MalformedError,
    Span,
    TooManyError,
)
from failsoft.json_values import mend_surrogates, pointer_of

MAX_BRACKETS = 300_000
HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")
DECIMAL = re.compile(r"-?[0-9]{1,20}")
# The path to a value, innermost first; only a refusal turns it into a pointer.
Place: TypeAlias = "tuple[Place, str | int] | None"
ERROR_CODES = (2, "STATUS_CODE_ERROR")
NUMBERS_IN_WORDS = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}


def read_spans(body: bytes) -> Iterator[Span | None]:
    """Read an ExportTraceServiceRequest; yield None for a span beyond the bounds.

    Raises MalformedError with the place of the first fault, and TooManyError.
    """
    return spans_in(_parse(body), MAX_ITEMS)


def read_logs(body: bytes) -> Iterator[LogRecord | None]:
    """Read an ExportLogsServiceRequest; as `read_spans`."""
    return logs_in(_parse(body), MAX_ITEMS)


def spans_in(document: object, limit: int | None = None) -> Iterator[Span | None]:
    """Read the spans of a parsed request, at most `limit`, as `read_spans` does."""
    groups = _groups(document, limit, "resource_spans", "scope_spans", "spans")
    return read_groups(groups, _identity, _identity, read_span)


def logs_in(document: object, limit: int | None = None) -> Iterator[LogRecord | None]:
    """Read the log records of a parsed request, as `read_spans` does."""
    groups = _groups(document, limit, "resource_logs", "scope_logs", "log_records")
    return read_groups(groups, _identity, _identity, read_log_record)


def _identity(message: "JsonMessage") -> "JsonMessage":
    return message


def _parse(body: bytes) -> object:
    # One or two bytes of JSON become an object of at least 56 bytes.
    if body.count(b"{") + body.count(b"[") > MAX_BRACKETS:
        raise TooManyError(TooManyError.__doc__)
    try:
        document = jiter.from_json(mend_surrogates(body), allow_inf_nan=False)
    except ValueError as error:
        raise MalformedError(f"not JSON: {error}") from error
    if document is None:
        _refuse(None, "an object")
    return document


def _groups(document: object, limit: int | None, outer: str, middle: str, inner: str) -> Groups:
    count = 0
    for resources in getattr(_object(document, None), outer):
        items = [
            (scopes.scope.name, item)
            for scopes in getattr(resources, middle)
            for item in getattr(scopes, inner)
        ]
        count += len(items)
        if limit is not None and count > limit:
            raise TooManyError(TooManyError.__doc__)
        yield resources.resource, items


class JsonMessage:
    """A JSON object under protobuf's names; missing or null fields have their defaults.

    `google.protobuf.json_format` expects base64 ids, refuses 10^400 and names no place.
    """

    __slots__ = ("_at", "_json")

    def __init__(self, json: Mapping[str, Any], at: Place) -> None:
        """Wrap the object at a place."""
        self._json = json
        self._at = at

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as protobuf has it
        """Return a field, or raise MalformedError with its place."""
        wire, read = FIELDS[name]
        return read(self._json.get(wire), (self._at, wire))

    def WhichOneof(self, _group: str) -> str | None:  # noqa: N802 - protobuf's name
        """Return the name of the field of an AnyValue that is set."""
        return next((VALUES[name] for name in self._json if name in VALUES), None)


def _object(value: object, at: Place) -> JsonMessage:
    if isinstance(value, dict):
        return JsonMessage(value, at)
    return JsonMessage({}, at) if value is None else _refuse(at, "an object")


def _objects(value: object, at: Place) -> list[JsonMessage]:
    if isinstance(value, list):
        return [
            JsonMessage(item, (at, index))
            if isinstance(item, dict)
            else _refuse((at, index), "an object")
            for index, item in enumerate(value)
        ]
    return [] if value is None else _refuse(at, "a list")


def _text(value: object, at: Place) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else _refuse(at, "a string")


def _identifier(value: object, at: Place) -> bytes:
    text = _text(value, at)
    return bytes.fromhex(text) if HEX.fullmatch(text) else _refuse(at, "hex digits")


def _number(value: object, at: Place) -> int:
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return 0 if value is None else _refuse(at, "an integer")


def _double(value: object, at: Place) -> float:
    if isinstance(value, str) and value in NUMBERS_IN_WORDS:
        return NUMBERS_IN_WORDS[value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        # An integer may be too large for a float.
        return float(value) if abs(value) < 1e300 else inf
    return _refuse(at, "a number")


def _boolean(value: object, at: Place) -> bool:
    return value if isinstance(value, bool) else _refuse(at, "a boolean")


def _status_code(value: object, _at: Place) -> int:
    return 2 if value in ERROR_CODES else 0


def _refuse(at: Place, expected: str) -> Never:
    segments: list[str | int] = []
    while at is not None:
        at, segment = at
        segments.insert(0, segment)
    raise MalformedError(f"{pointer_of(segments) or '/'}: expected {expected}")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


KINDS: Mapping[Callable[[object, Place], Any], str] = {
    _objects: "resource_spans scope_spans spans resource_logs scope_logs log_records"
    " attributes events values",
    _object: "resource scope status body value array_value kvlist_value",
    _text: "name key event_name string_value",
    _identifier: "trace_id span_id parent_span_id",
    _number: "start_time_unix_nano end_time_unix_nano time_unix_nano observed_time_unix_nano"
    " int_value",
    _double: "double_value",
    _boolean: "bool_value",
    _status_code: "code",
}
FIELDS = {name: (_camel(name), read) for read, names in KINDS.items() for name in names.split()}
VALUES = {wire: name for name, (wire, _) in FIELDS.items() if name.endswith("_value")}

"""Export requests in JSON with protobuf's names: hex ids, lower camel case.

Names in snake case and those of OTLP before 1.0 are read as well.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from math import inf, nan
from operator import attrgetter
from typing import Any, NamedTuple, Never, TypeAlias

import jiter

from diagnostics.ingest.otlp.reading import (
    Groups,
    or_unread,
    read_groups,
    read_log_record,
    read_span,
)
from diagnostics.ingest.otlp.telemetry import (
    MAX_ITEMS,
    LogRecord,
    MalformedError,
    Span,
    TooManyError,
    UnreadItem,
)
from failsoft.json_values import mend_surrogates, mend_utf_8, pointer_of

MAX_BRACKETS = 300_000
MAX_NUMBER = 2**64
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")
DECIMAL = re.compile(r"-?[0-9]{1,20}")
# The path to a value, innermost first; only a refusal turns it into a pointer.
Place: TypeAlias = "tuple[Place, str | int] | None"
# Numbers and names; exporters differ in prefix and letter case.
ERROR_CODES = frozenset({"2", "ERROR"})
NUMBERS_IN_WORDS = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}


class OtlpSignal(NamedTuple):
    """The names of the levels of a request, and the address of such requests."""

    outer: str
    middle: str
    inner: str
    address: str


TRACES = OtlpSignal("resource_spans", "scope_spans", "spans", "spans belong at /v1/traces")
LOGS = OtlpSignal("resource_logs", "scope_logs", "log_records", "log records belong at /v1/logs")


def read_spans(body: bytes) -> Iterator[Span | UnreadItem]:
    """Read an ExportTraceServiceRequest; what cannot be read costs no other span.

    Raises MalformedError with the place of the fault if the request itself cannot be read, and
    TooManyError.
    """
    document = _parse(body)
    yield from spans_in(document, MAX_ITEMS)
    yield from _misplaced(document, TRACES, LOGS)


def read_logs(body: bytes) -> Iterator[LogRecord | UnreadItem]:
    """Read an ExportLogsServiceRequest; as `read_spans`."""
    document = _parse(body)
    yield from logs_in(document, MAX_ITEMS)
    yield from _misplaced(document, LOGS, TRACES)


def spans_in(document: object, limit: int | None = None) -> Iterator[Span | UnreadItem]:
    """Read the spans of a parsed request, at most `limit`, as `read_spans` does."""
    return read_groups(_groups(document, limit, TRACES), RESOURCE, _identity, read_span)


def logs_in(document: object, limit: int | None = None) -> Iterator[LogRecord | UnreadItem]:
    """Read the log records of a parsed request, as `read_spans` does."""
    return read_groups(_groups(document, limit, LOGS), RESOURCE, _identity, read_log_record)


RESOURCE = attrgetter("resource")


def _identity(message: "JsonMessage") -> "JsonMessage":
    return message


def _misplaced(document: object, expected: OtlpSignal, other: OtlpSignal) -> Iterator[UnreadItem]:
    """Yield what was sent to the wrong address, or under names that no request has."""
    for _, items in _groups(document, MAX_ITEMS, other):
        yield from (UnreadItem(other.address) for _ in items)
    request = _object(document, None)
    if not getattr(request, other.outer):
        unread = or_unread(lambda: _listed(request, expected.outer))
        yield from [unread] if isinstance(unread, UnreadItem) else []


def _parse(body: bytes) -> object:
    # One or two bytes of JSON become an object of at least 56 bytes.
    if body.count(b"{") + body.count(b"[") > MAX_BRACKETS:
        raise TooManyError(TooManyError.__doc__)
    text = mend_surrogates(mend_utf_8(body.removeprefix(BYTE_ORDER_MARK)))
    try:
        document = jiter.from_json(text)
    except ValueError as error:
        raise MalformedError(f"not JSON: {error}") from error
    if document is None:
        _refuse(None, "an object")
    return document


def _groups(document: object, limit: int | None, signal: OtlpSignal) -> Groups:
    count = 0
    for resources in getattr(_object(document, None), signal.outer):
        items = list(_items_in(resources, signal.middle, signal.inner))
        count += len(items)
        if limit is not None and count > limit:
            raise TooManyError(TooManyError.__doc__)
        yield resources, items


def _items_in(message: Any, name: str, *below: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - a message
    """Yield the items below a message with the names of their scopes; one for an unread part."""
    listed = or_unread(lambda: (_listed(message, name), "" if below else message.scope.name))
    if isinstance(listed, UnreadItem):
        yield "", listed
        return
    parts, scope = listed
    for part in parts:
        if below:
            yield from _items_in(part, *below)
        else:
            yield scope, part


def _listed(message: "JsonMessage", name: str) -> list[Any]:
    """Return a list of a message; refuse a message that has something else instead."""
    parts: list[Any] = getattr(message, name)
    if not parts:
        message.refuse_others(name)
    return parts


class JsonMessage:
    """A JSON object under protobuf's names; missing or null fields have their defaults.

    `google.protobuf.json_format` expects base64 ids, refuses 10^400 and names no place.
    """

    __slots__ = ("_at", "_json")

    def __init__(self, json: Mapping[str, Any], at: Place) -> None:
        self._json = json
        self._at = at

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as protobuf has it
        """Return a field, or raise MalformedError with its place."""
        wire, read = FIELDS[name]
        value = self._json.get(wire)
        if value is None:
            value = next(
                (self._json[other] for other in OTHER_NAMES[name] if other in self._json), None
            )
        return read(value, (self._at, wire))

    def refuse_others(self, name: str) -> None:
        """Raise MalformedError if there are values of another name instead."""
        for key, value in self._json.items():
            if value and isinstance(value, list | dict) and key not in CONTEXT:
                _refuse((self._at, key), f"the name {FIELDS[name][0]}")

    def WhichOneof(self, _group: str) -> str | None:  # noqa: N802 - protobuf's name
        """Return the name of the field of an AnyValue that is set."""
        known = (VALUES.get(key) for key, value in self._json.items() if value is not None)
        return next(filter(None, known), None)


def _object(value: object, at: Place) -> JsonMessage:
    if isinstance(value, dict):
        return JsonMessage(value, at)
    return JsonMessage({}, at) if value is None else _refuse(at, "an object")


class NoMessage:
    """A value in place of an object: each of its fields raises MalformedError."""

    __slots__ = ("_at",)

    def __init__(self, at: Place) -> None:
        self._at = at

    def __getattr__(self, _name: str) -> Never:
        _refuse(self._at, "an object")


def _objects(value: object, at: Place) -> list[JsonMessage | NoMessage]:
    if isinstance(value, list):
        if len(value) > MAX_BRACKETS:
            raise TooManyError(TooManyError.__doc__)
        return [
            JsonMessage(item, (at, index)) if isinstance(item, dict) else NoMessage((at, index))
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
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_NUMBER:
        return value
    return 0 if value is None else _refuse(at, "an integer of 64 bits")


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
    name = str(value).strip().upper() if isinstance(value, int | str) else ""
    return 2 if name.removeprefix("STATUS_CODE_") in ERROR_CODES else 0


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
    _text: "name key event_name message string_value",
    _identifier: "trace_id span_id parent_span_id",
    _number: "start_time_unix_nano end_time_unix_nano time_unix_nano observed_time_unix_nano"
    " int_value",
    _double: "double_value",
    _boolean: "bool_value",
    _status_code: "code",
}
FIELDS = {name: (_camel(name), read) for read, names in KINDS.items() for name in names.split()}
BEFORE_1_0 = {
    "scope_spans": "instrumentation_library_spans",
    "scope_logs": "instrumentation_library_logs",
    "scope": "instrumentation_library",
    "log_records": "logs",
}
OTHER_NAMES = {
    name: (name, *((_camel(old), old) if (old := BEFORE_1_0.get(name)) else ())) for name in FIELDS
}
# What stands beside the lists of a request.
CONTEXT = frozenset({FIELDS[name][0] for name in ("resource", "scope")} | {*OTHER_NAMES["scope"]})
VALUES = {
    key: name
    for name, (wire, _) in FIELDS.items()
    if name.endswith("_value")
    for key in (wire, name)
}

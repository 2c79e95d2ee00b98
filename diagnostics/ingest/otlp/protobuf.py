"""Export requests in protobuf, split by hand and unpacked by OpenTelemetry's messages.

An export request holds resources, a resource holds scopes, a scope holds items. Splitting
them first bounds the work and the memory: one item is unpacked at a time.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as PackedLogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as PackedSpan

from diagnostics.ingest.otlp.reading import read_groups, read_log_record, read_span
from diagnostics.ingest.otlp.telemetry import (
    MAX_ITEMS,
    LogRecord,
    MalformedError,
    Span,
    TooManyError,
    TooManyValuesError,
    UnreadItem,
)

MAX_ITEM_BYTES = 1 << 20
MAX_FIELDS = 50_000
# As deep as protobuf itself unpacks messages.
MAX_LEVELS = 100
VARINT, FIXED_64, LENGTH, FIXED_32 = 0, 1, 2, 5
FIXED_SIZES = {FIXED_64: 8, FIXED_32: 4}
# The field numbers are the same in requests of traces and logs.
RESOURCES, RESOURCE, SCOPE, SCOPE_NAME, ITEMS = 1, 1, 1, 1, 2
# The second one was `instrumentation_library_spans` for a while.
SCOPES = frozenset({2, 1000})
WIRE_KINDS = {
    FieldDescriptor.TYPE_FIXED64: FIXED_64,
    FieldDescriptor.TYPE_FIXED32: FIXED_32,
    **dict.fromkeys(
        (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE),
        LENGTH,
    ),
}
MISPLACED = {
    PackedSpan: "not a span: log records belong at /v1/logs",
    PackedLogRecord: "not a log record: spans belong at /v1/traces",
}


def read_spans(body: bytes) -> Iterator[Span | UnreadItem]:
    """Read an ExportTraceServiceRequest; what cannot be read costs no other span.

    Raises MalformedError if the request cannot be split into spans, and TooManyError.
    """
    return _read(body, PackedSpan, read_span)


def read_logs(body: bytes) -> Iterator[LogRecord | UnreadItem]:
    """Read an ExportLogsServiceRequest; as `read_spans`."""
    return _read(body, PackedLogRecord, read_log_record)


def _read(body: bytes, kind: Any, read: Callable[..., Any]) -> Iterator[Any]:  # noqa: ANN401 - a message class of theirs
    mend = _Mender().mend
    unpack_item = partial(_unpack_item, kind, mend)
    return read_groups(_split(body), partial(_unpack, Resource, mend), unpack_item, read)


Mend = Callable[[bytes, Descriptor], bytes]


def _unpack_item(kind: Any, mend: Mend, packed: bytes) -> Any:  # noqa: ANN401 - as above
    """Unpack an item, unless its first field shows that it is one of the other signal."""
    first = packed[0] if packed else 0
    field = kind.DESCRIPTOR.fields_by_number.get(first >> 3)
    if field is not None and WIRE_KINDS.get(field.type, VARINT) != first & 7:
        raise MalformedError(MISPLACED[kind])
    return _unpack(kind, mend, packed)


def _unpack(kind: Any, mend: Mend, packed: bytes) -> Any:  # noqa: ANN401 - as above
    if len(packed) > MAX_ITEM_BYTES:
        raise TooManyValuesError(TooManyValuesError.__doc__)
    try:
        return kind.FromString(packed)
    except DecodeError:
        mended = mend(packed, kind.DESCRIPTOR)
    try:
        return kind.FromString(mended)
    except DecodeError as error:
        raise MalformedError(f"invalid protobuf in {kind.DESCRIPTOR.name}") from error


class WireField(NamedTuple):
    """A length-delimited field: its number, where its length is written, and its position."""

    number: int
    size_at: int
    start: int
    end: int


def _split(body: bytes) -> list[tuple[bytes, list[tuple[str, bytes]]]]:
    """Return every resource with its items, still packed; at most 10,000 items."""
    splitter = _Splitter(body)
    groups = []
    count = 0
    for resources in splitter.parts(0, len(body)):
        if resources.number == RESOURCES:
            groups.append(splitter.group_of(resources))
            count += len(groups[-1][1])
            if count > MAX_ITEMS:
                raise TooManyError(TooManyError.__doc__)
    return groups


class _Splitter:
    def __init__(self, body: bytes, remaining: int = MAX_FIELDS) -> None:
        self.body = body
        self.remaining = remaining

    def group_of(self, resources: WireField) -> tuple[bytes, list[tuple[str, bytes]]]:
        """Return a resource, which may follow its scopes, and its items."""
        parts = list(self.parts(resources.start, resources.end))
        resource = b"".join(
            self.body[part.start : part.end] for part in parts if part.number == RESOURCE
        )
        scopes = [part for part in parts if part.number in SCOPES]
        return resource, [item for scope in scopes for item in self.items_of(scope)]

    def items_of(self, scope: WireField) -> list[tuple[str, bytes]]:
        """Return the items of a scope, whose name may follow them."""
        parts = list(self.parts(scope.start, scope.end))
        names = [
            self.body[name.start : name.end].decode("utf-8", "replace")
            for part in parts
            if part.number == SCOPE
            for name in self.parts(part.start, part.end)
            if name.number == SCOPE_NAME
        ]
        name = names[-1] if names else ""
        return [(name, self.body[item.start : item.end]) for item in parts if item.number == ITEMS]

    def parts(self, at: int, end: int) -> Iterator[WireField]:
        """Yield the length-delimited fields between two positions."""
        while at < end:
            self.remaining -= 1
            if self.remaining < 0:
                raise TooManyError(TooManyError.__doc__)
            tag, at = self.varint(at, end)
            number, kind = tag >> 3, tag & 7
            if kind == VARINT:
                _, at = self.varint(at, end)
            elif kind == LENGTH:
                size, start = self.varint(at, end)
                if size > end - start:
                    raise MalformedError(f"cut off at byte {start}")
                yield WireField(number, at, start, start + size)
                at = start + size
            elif kind in FIXED_SIZES:
                at += FIXED_SIZES[kind]
            else:
                raise MalformedError(f"invalid protobuf at byte {at}")
        if at > end:
            raise MalformedError(f"cut off at byte {end}")

    def varint(self, at: int, end: int) -> tuple[int, int]:
        """Return a number of at most 64 bits, and the position after it."""
        value = shift = 0
        while at < end and shift < 70:
            byte = self.body[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        raise MalformedError(f"cut off in a number at byte {at}")


class _Mender:
    """Makes texts of messages UTF-8, as protobuf requires; bounded over all of a request."""

    def __init__(self) -> None:
        self.remaining = MAX_FIELDS

    def mend(self, packed: bytes, kind: Descriptor) -> bytes:
        """Return a message with U+FFFD for what is not UTF-8; raises MalformedError."""
        splitter = _Splitter(packed, self.remaining)
        try:
            return _repaired(splitter, WireField(0, 0, 0, len(packed)), kind, MAX_LEVELS)
        except TooManyError as error:
            raise MalformedError("a text is not UTF-8") from error
        finally:
            self.remaining = splitter.remaining


def _repaired(splitter: _Splitter, message: WireField, kind: Descriptor, levels: int) -> bytes:
    body, repaired = splitter.body, message.start
    parts = []
    for field in splitter.parts(message.start, message.end):
        known = kind.fields_by_number.get(field.number)
        if known is None or not levels:
            continue
        if known.type == FieldDescriptor.TYPE_STRING:
            value = body[field.start : field.end].decode("utf-8", "replace").encode()
        elif known.message_type is not None:
            value = _repaired(splitter, field, known.message_type, levels - 1)
        else:
            continue
        parts += [body[repaired : field.size_at], _varint(len(value)), value]
        repaired = field.end
    return b"".join([*parts, body[repaired : message.end]])


def _varint(value: int) -> bytes:
    packed = bytearray()
    while value > 0x7F:
        packed.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*packed, value])

"""Export requests in protobuf, split by hand and unpacked by OpenTelemetry's messages.

An export request holds resources, a resource holds scopes, a scope holds items. Splitting
them first bounds the work and the memory: one item is unpacked at a time.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

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
)

MAX_ITEM_BYTES = 1 << 20
MAX_FIELDS = 50_000
VARINT, FIXED_64, LENGTH, FIXED_32 = 0, 1, 2, 5
FIXED_SIZES = {FIXED_64: 8, FIXED_32: 4}
# The field numbers are the same in requests of traces and logs.
RESOURCES, RESOURCE, SCOPES, SCOPE, SCOPE_NAME, ITEMS = 1, 1, 2, 1, 1, 2


def read_spans(body: bytes) -> Iterator[Span | None]:
    """Read an ExportTraceServiceRequest; yield None for a span beyond the bounds.

    Raises MalformedError at the first byte that is wrong, and TooManyError.
    """
    return read_groups(_split(body), _unpacker(Resource), _unpacker(PackedSpan), read_span)


def read_logs(body: bytes) -> Iterator[LogRecord | None]:
    """Read an ExportLogsServiceRequest; as `read_spans`."""
    groups, unpack = _split(body), _unpacker(PackedLogRecord)
    return read_groups(groups, _unpacker(Resource), unpack, read_log_record)


def _unpacker(kind: Any) -> Callable[[bytes], Any]:  # noqa: ANN401 - a message class of theirs
    return partial(_unpack, kind)


def _unpack(kind: Any, packed: bytes) -> Any:  # noqa: ANN401 - a message class of theirs
    if len(packed) > MAX_ITEM_BYTES:
        raise TooManyValuesError(TooManyValuesError.__doc__)
    try:
        return kind.FromString(packed)
    except DecodeError as error:
        name = kind.DESCRIPTOR.name
        raise MalformedError(f"invalid protobuf in {name}") from error


class WireField(NamedTuple):
    """A length-delimited field: its number and position."""

    number: int
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
    def __init__(self, body: bytes) -> None:
        self.body = body
        self.remaining = MAX_FIELDS

    def group_of(self, resources: WireField) -> tuple[bytes, list[tuple[str, bytes]]]:
        """Return a resource, which may follow its scopes, and its items."""
        parts = list(self.parts(resources.start, resources.end))
        resource = b"".join(
            self.body[part.start : part.end] for part in parts if part.number == RESOURCE
        )
        scopes = [part for part in parts if part.number == SCOPES]
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
                size, at = self.varint(at, end)
                if size > end - at:
                    raise MalformedError(f"cut off at byte {at}")
                yield WireField(number, at, at + size)
                at += size
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

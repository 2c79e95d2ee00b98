"""Protobuf's wire format: splitting an export request without unpacking it, and answering.

An export request holds resources, a resource holds scopes, a scope holds items. Splitting
them first bounds the work and the memory: one item is unpacked at a time.
"""

from collections.abc import Iterator
from typing import NamedTuple

from diagnostics.ingest.otlp.telemetry import MAX_ITEMS, MalformedError, TooManyError

MAX_FIELDS = 50_000
VARINT, FIXED_64, LENGTH, FIXED_32 = 0, 1, 2, 5
FIXED_SIZES = {FIXED_64: 8, FIXED_32: 4}
# The same numbers in requests of traces and of logs.
RESOURCES, RESOURCE, SCOPES, ITEMS = 1, 1, 2, 2


class Packed(NamedTuple):
    """An item and its resource, both still packed."""

    resource: bytes
    item: bytes


class WireField(NamedTuple):
    """A field whose value has a length: its number and where it stands."""

    number: int
    start: int
    end: int


def split_request(body: bytes) -> list[Packed]:
    """Return every item of an export request with its resource.

    Raises MalformedError, or TooManyError beyond 10,000 items.
    """
    splitter = _Splitter(body)
    found: list[Packed] = []
    for resources in splitter.parts(0, len(body)):
        if resources.number == RESOURCES:
            found += splitter.items_of(resources)
            if len(found) > MAX_ITEMS:
                raise TooManyError(TooManyError.__doc__)
    return found


class _Splitter:
    def __init__(self, body: bytes) -> None:
        self.body = body
        self.left = MAX_FIELDS

    def items_of(self, resources: WireField) -> list[Packed]:
        """A resource may stand behind its scopes."""
        parts = list(self.parts(resources.start, resources.end))
        resource = b"".join(
            self.body[part.start : part.end] for part in parts if part.number == RESOURCE
        )
        return [
            Packed(resource, self.body[item.start : item.end])
            for scope in parts
            if scope.number == SCOPES
            for item in self.parts(scope.start, scope.end)
            if item.number == ITEMS
        ]

    def parts(self, at: int, end: int) -> Iterator[WireField]:
        """Walk the fields between two places; those without a length are passed over."""
        while at < end:
            self.left -= 1
            if self.left < 0:
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
                raise MalformedError(f"no protobuf at byte {at}")
        if at > end:
            raise MalformedError(f"cut off at byte {end}")

    def varint(self, at: int, end: int) -> tuple[int, int]:
        """Read a number of at most 64 bits; give it and where the next thing begins."""
        value = shift = 0
        while at < end and shift < 70:
            byte = self.body[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        raise MalformedError(f"cut off in a number at byte {at}")


def pack_status(code: int, message: str) -> bytes:
    """Pack a google.rpc.Status: code, message."""
    return _pack_number(1, code) + _pack_bytes(2, message.encode())


def pack_partial(rejected: int, message: str) -> bytes:
    """Pack an export response; an empty one when there is nothing to tell."""
    if not rejected and not message:
        return b""
    inner = _pack_number(1, rejected) + _pack_bytes(2, message.encode())
    return _pack_bytes(1, inner)


def _pack_number(number: int, value: int) -> bytes:
    return _varint(number << 3 | VARINT) + _varint(value) if value else b""


def _pack_bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | LENGTH) + _varint(len(value)) + value if value else b""


def _varint(value: int) -> bytes:
    packed = bytearray()
    while value > 0x7F:
        packed.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*packed, value])

"""Reading a posted batch: a JSON array or JSON lines, faults located by line and column."""

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import NamedTuple, TypeAlias, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from failsoft.events import PostedEvent, describe_errors
from failsoft.json_values import JSON, MAX_INTEGER, clean_json, mend_surrogates
from failsoft.parsing.strict import JsonTextError, parse_json

_SPACE = re.compile(r"[ \t\r\n]*")
# At the end of a text that was cut off: it may have gone on.
_CUT_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d*)?\Z")
# Only where a value ends matters: numbers may be of any size.
_VALUE = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


class ArrayItem(NamedTuple):
    """A value of an array, and where it begins in the text of the array (1-based).

    `lead` goes before the rest of a broken array, so that a parser finds its fault.
    """

    text: str
    line: int
    column: int
    lead: str = ""


def split_array(text: str) -> Iterator[ArrayItem]:
    """Yield the items of an array, and as the last one what cannot be split, if any."""
    separator, lead = "[", "[0"
    place, line, line_begin = 0, 1, 0
    while text.startswith(separator, after := _skip_space(text, place)):
        begin = _skip_space(text, after + 1)
        line, line_begin = _advance(text, place, begin, line, line_begin)
        place, lead = begin, "[0,"
        if _CUT_NUMBER.match(text, begin):
            break
        try:
            _, place = _VALUE.raw_decode(text, begin)
        except (ValueError, RecursionError):
            break
        yield ArrayItem(text[begin:place], line, begin - line_begin + 1)
        line, line_begin = _advance(text, begin, place, line, line_begin)
        separator, lead = ",", "[0"
    if text[place:].strip(" \t\r\n") != "]" or lead == "[0,":
        yield ArrayItem(text[place:], line, place - line_begin + 1, lead)


def _skip_space(text: str, place: int) -> int:
    return _SPACE.match(text, place).end()  # type: ignore[union-attr] # matches nothing, too


def _advance(text: str, begin: int, end: int, line: int, line_begin: int) -> tuple[int, int]:
    """Return the line at `end` and where it begins, from those at `begin`."""
    newline = text.rfind("\n", begin, end)
    return line + text.count("\n", begin, end), newline + 1 if newline >= 0 else line_begin


MAX_PLAIN_BYTES = 4 << 20
MAX_COMPRESSED_BYTES = 1 << 20
MAX_EVENTS = 1_000
MAX_MEMBERS = 64
# A million short keys in a body of 4 MiB would become 85 MB.
MAX_KEYS = 100_000
GZIP = 31
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_ID = 64
ESCAPED_NUL = b"\\u0000"
# With at most six values each, and 70 of the event itself: below the bound on values.
MOST_PARTS = 99
ModelT = TypeVar("ModelT", bound=BaseModel)
EVENTS = TypeAdapter(list[PostedEvent])


class WrongShapeError(ValueError):
    """The body is JSON, but not a list or object; `code` says which was expected."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class TooLargeError(ValueError):
    """the body is larger than allowed"""


@dataclass(frozen=True, slots=True)
class RefusedItem:
    """An item that is not an event: its id if it has one, and why.

    `text` is the line, if that is not even JSON.
    """

    event_id: str | None
    errors: list[dict[str, str]]
    text: str = ""


BatchItem: TypeAlias = "JSON | RefusedItem"


def inflate(body: bytes) -> bytes:
    """Return unpacked gzip of up to 4 MiB; raises TooLargeError and JsonTextError."""
    plain = bytearray()
    remaining = body
    # A stream may have several members; each pass copies the rest.
    for _ in range(MAX_MEMBERS):
        unpacker = zlib.decompressobj(wbits=GZIP)
        try:
            plain += unpacker.decompress(remaining, MAX_PLAIN_BYTES + 1 - len(plain))
        except zlib.error as error:
            raise JsonTextError("not_gzip", "the body is not gzip") from error
        if len(plain) > MAX_PLAIN_BYTES:
            raise TooLargeError(f"at most {MAX_PLAIN_BYTES} bytes when unpacked")
        if not unpacker.eof:
            raise JsonTextError("not_gzip", "the gzip stream is cut off")
        remaining = unpacker.unused_data
        if not remaining:
            return bytes(plain)
    raise TooLargeError(f"at most {MAX_MEMBERS} gzip members")


def read_items(body: bytes) -> Sequence[BatchItem]:
    """Parse a JSON array of at most 1,000 items, one object, or JSON lines sent as JSON.

    What is not JSON, duplicate keys included, is refused with line and column (1-based, in
    characters), in an array only the item, or the rest if nothing says where the next item
    begins. Lone surrogates become U+FFFD. NaN and infinities are left to the check of their item.
    """
    try:
        value = _parse(body)
    except JsonTextError as error:
        # Fluent Bit sends lines with the content type of an array.
        # Of a document only the first line begins like an object.
        begin = body.removeprefix(BYTE_ORDER_MARK).lstrip()[:1]
        has_lines = begin == b"{" and b"\n{" in body
        return read_lines(body) if has_lines else _read_by_item(body, error)
    if isinstance(value, dict):
        if _holds_items(value):
            message = "Post the array itself, without an object around it."
            raise WrongShapeError("not_a_list", message)
        return [value]
    if not isinstance(value, list):
        raise WrongShapeError("not_a_list", "The body must be an array of events, or one event.")
    _check_count(len(value))
    return value


def _holds_items(value: dict[str, JSON]) -> bool:
    """Whether an object is no item but has a list of some: `{"events": [...]}`."""
    lists = [items for items in value.values() if isinstance(items, list)]
    return "name" not in value and any(isinstance(item, dict) for items in lists for item in items)


def _read_by_item(body: bytes, error: JsonTextError) -> Sequence[BatchItem]:
    """Return the items of an array, each read by itself; raises `error` if none is an object."""
    text = mend_surrogates(body.removeprefix(BYTE_ORDER_MARK)).decode("utf-8", "replace")
    parts = list(islice(split_array(text), MAX_EVENTS + 1))
    _check_count(len(parts))
    items = [_read_part(p.text.encode(), p.line, p.column, p.lead) for p in parts]
    if not any(isinstance(item, dict) for item in items):
        raise error
    return items


def read_object(body: bytes) -> dict[str, JSON]:
    """Parse a JSON object; faults as in `read_items`."""
    value = _parse(body)
    if not isinstance(value, dict):
        raise WrongShapeError("not_an_object", "The body must be an object.")
    return value


def read_lines(body: bytes) -> Sequence[BatchItem]:
    """Parse JSON lines, one value per line; empty lines are skipped, broken ones refused alone."""
    # Line by line: a list of four million lines would take more memory than the body.
    lines = BytesIO(body.removeprefix(BYTE_ORDER_MARK))
    non_empty = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    numbered_lines = list(islice(non_empty, MAX_EVENTS + 1))
    _check_count(len(numbered_lines))
    return [_read_part(line.removesuffix(b"\n"), number) for number, line in numbered_lines]


def _read_part(part: bytes, line: int, column: int = 1, lead: str = "") -> BatchItem:
    try:
        return _parse(lead.encode() + part, line, column - len(lead))
    except JsonTextError as error:
        message = f"{error}; nothing after it was read" if lead else str(error)
        fault = {"path": "", "code": error.code, "message": message}
        return RefusedItem(None, [fault], part.decode("utf-8", "replace"))


def read_events(items: Sequence[BatchItem], body: bytes) -> list[PostedEvent | RefusedItem]:
    """Check the items of a body against the schema, each by itself.

    A body without escaped NULs is first checked as a whole: if all items are valid, the schema
    has bounded what the walk over any JSON would.
    """
    if ESCAPED_NUL not in body:
        try:
            events = EVENTS.validate_python(items)
        except ValidationError:
            pass
        else:
            if not any(map(_may_be_too_large, events)):
                return list(events)
    return [read_item(item, PostedEvent) for item in items]


def _may_be_too_large(event: PostedEvent) -> bool:
    """Whether an event has so many or so large values that each must be checked."""
    parts = len(event.validation_errors) + len(event.repairs) + len(event.coerced)
    # An integer beyond the bound has become a float.
    return parts > MOST_PARTS or any(
        isinstance(value, float) and abs(value) >= MAX_INTEGER
        for value in event.attributes.values()
    )


def read_item(
    item: BatchItem, model: type[ModelT], unwalked: Mapping[str, JSON] | None = None
) -> ModelT | RefusedItem:
    """Check one item against a model; each fault has a pointer and a code.

    `unwalked` are its fields whose values are bounded elsewhere.
    """
    if isinstance(item, RefusedItem):
        return item
    cleaned, fault = clean_json(item)
    if fault is not None:
        return RefusedItem(_id_of(item), [vars(fault)])
    if unwalked and isinstance(cleaned, dict):
        cleaned |= unwalked
    try:
        return model.model_validate(cleaned)
    except ValidationError as error:
        return RefusedItem(_id_of(cleaned), describe_errors(error))


def _check_count(count: int) -> None:
    if count > MAX_EVENTS:
        raise TooLargeError(f"at most {MAX_EVENTS} events in a request")


def _parse(body: bytes, line: int = 1, column: int = 1) -> JSON:
    """Parse the body, or a part of it that begins at this line and column."""
    # Inside a text the quote before a colon is escaped.
    if body.count(b'":') - body.count(b'\\":') > MAX_KEYS:
        raise TooLargeError(f"at most {MAX_KEYS} keys in a request")
    text = mend_surrogates(body)
    value: JSON
    try:
        with suppress(JsonTextError):
            value = parse_json(text, MAX_PLAIN_BYTES, allow_inf_nan=True)
            return value
        # The fault is that of strict JSON, as others would call it.
        value = parse_json(text, MAX_PLAIN_BYTES)
    except JsonTextError as error:
        error.column += column - 1 if error.line == 1 else 0
        error.line += line - 1
        raise
    return value


def _id_of(item: JSON) -> str | None:
    identifier = item.get("event_id") if isinstance(item, dict) else None
    return identifier[:LONGEST_ID] if isinstance(identifier, str) else None

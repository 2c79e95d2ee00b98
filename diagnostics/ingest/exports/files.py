"""Files of telemetry, item by item: OTLP's JSON, exports of Langfuse and of Phoenix.

A file is one JSON document or one value per line; CSV has a header. Unreadable parts are
reported with their place, and the rest of the file is read.
"""

import csv
import gzip
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import IO, Any

import jiter

from diagnostics.ingest.exports import langfuse, phoenix
from diagnostics.ingest.otlp.json_encoding import logs_in, spans_in
from diagnostics.ingest.otlp.telemetry import LogRecord, MalformedError, Span, UnreadItem

Record = Mapping[str, Any]
# jiter's position prefix for a text of one line.
ONE_LINE = "line 1 "


class ExportFormat(StrEnum):
    """The format of a file."""

    OTLP = "otlp"
    LANGFUSE = "langfuse"
    PHOENIX = "phoenix"


class UnreadableError(ValueError):
    """A file or a part of it has no known format; the text says where and why."""


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """A span or log record with its place in the file."""

    place: str
    item: Span | LogRecord | UnreadItem


Unread = Callable[[str], None]


def read_file(
    path: Path, export_format: ExportFormat | None, unread: Unread
) -> Iterator[PlacedItem]:
    """Yield the items of a file in order; `unread` receives unreadable parts and their places.

    Raises UnreadableError if the format is neither given nor recognised.
    """
    for place, record in _read_records(path, unread):
        export_format = export_format or guess_format(record)
        if export_format is None:
            known = ", ".join(ExportFormat)
            raise UnreadableError(f"{path}:{place}: unknown format; supported: {known}")
        try:
            for item in READERS[export_format](record):
                yield PlacedItem(f"{path}:{place}", item)
        except (MalformedError, ValueError) as error:
            unread(f"{path}:{place}: {error}")


def guess_format(record: Record) -> ExportFormat | None:
    """Return the format of a record, recognised by names unique to it."""
    if any(f"resource{kind}" in record for kind in ("Spans", "Logs", "Metrics")):
        return ExportFormat.OTLP
    if phoenix.is_span(record):
        return ExportFormat.PHOENIX
    return ExportFormat.LANGFUSE if langfuse.is_observation(record) else None


def _read_otlp(record: Record) -> Iterator[Span | LogRecord | UnreadItem]:
    yield from spans_in(record)
    yield from logs_in(record)


READERS: Mapping[ExportFormat, Callable[[Record], Iterable[Span | LogRecord | UnreadItem]]] = {
    ExportFormat.OTLP: _read_otlp,
    ExportFormat.LANGFUSE: langfuse.read_record,
    ExportFormat.PHOENIX: phoenix.read_record,
}


def _read_records(path: Path, unread: Unread) -> Iterator[tuple[str, Record]]:
    try:
        yield from _records(path, unread)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableError(f"{path}: {reason}") from error


def _records(path: Path, unread: Unread) -> Iterator[tuple[str, Record]]:
    name = path.name.removesuffix(".gz")
    with _open(path) as file:
        if name.endswith(".csv"):
            yield from _rows(file)
            return
        first = file.readline()
        while first and not first.strip():
            first = file.readline()
        second = file.readline()
        if _parse_line(first) is None or not second.strip():
            text = "".join(chain((first, second), file))
            values = _values(path, text)
        else:
            values = _lines(path, chain((first, second), file), unread)
        for place, value in values:
            if isinstance(value, dict):
                yield place, value
            else:
                unread(f"{path}:{place}: expected an object")


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace")
    return path.open(encoding="utf-8-sig", errors="replace", newline="")


def _rows(file: IO[str]) -> Iterator[tuple[str, Record]]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.DictReader(file)
    for row in reader:
        yield str(reader.line_num), row


def _lines(path: Path, lines: Iterable[str], unread: Unread) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield str(number), jiter.from_json(line.encode("utf-8", "replace"))
        except ValueError as error:
            unread(f"{path}:{number}: not JSON: {str(error).replace(ONE_LINE, '')}")


def _values(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yield the values of a document: of a list, of an API response with a list, or itself."""
    try:
        document = jiter.from_json(text.encode("utf-8", "replace"))
    except ValueError as error:
        raise UnreadableError(f"{path}: not JSON: {error}") from error
    if isinstance(document, dict) and isinstance(document.get("data"), list):
        document = document["data"]
    if isinstance(document, list):
        yield from ((f"item {number}", value) for number, value in enumerate(document, start=1))
    else:
        yield "1", document


def _parse_line(line: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return jiter.from_json(line.encode("utf-8", "replace"))
    except ValueError:
        return None

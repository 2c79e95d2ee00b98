"""Files of telemetry, item by item: OTLP's JSON, exports of Langfuse and of Phoenix.

A file is one JSON document or one value per line; CSV has a header. Unreadable parts are
reported with their place, and the rest of the file is read.
"""

import csv
import gzip
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import jiter

from diagnostics.ingest.exports import langfuse, phoenix
from diagnostics.ingest.otlp.json_encoding import logs_in, spans_in
from diagnostics.ingest.otlp.telemetry import LogRecord, Span, UnreadItem

Record = Mapping[str, Any]
# Of a line, a document or a field: what is in memory at once, several times over.
MOST_CHARACTERS = 128 << 20
# jiter's position prefix for a text of one line.
ONE_LINE = "line 1 "


class ExportFormat(StrEnum):
    OTLP = "otlp"
    LANGFUSE = "langfuse"
    PHOENIX = "phoenix"


class UnreadableError(ValueError):
    """A file or a part of it has no known format; the text says where and why."""


class PlacedItem(NamedTuple):
    place: str
    item: Span | LogRecord | UnreadItem


KINDS: Sequence[tuple[Callable[[int], bool], str]] = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
Unread = Callable[[str], None]
NumberedLine = tuple[int, str]


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
        except ValueError as error:
            unread(f"{path}:{place}: {error}")


def guess_format(record: Record) -> ExportFormat | None:
    """Return the format of a record, recognised by names unique to it."""
    if any(f"resource{kind}" in record for kind in ("Spans", "Logs", "Metrics")):
        return ExportFormat.OTLP
    if phoenix.is_span(record):
        return ExportFormat.PHOENIX
    return ExportFormat.LANGFUSE if langfuse.is_observation(record) else None


READERS: Mapping[ExportFormat, Callable[[Record], Iterable[Span | LogRecord | UnreadItem]]] = {
    ExportFormat.OTLP: lambda record: chain(spans_in(record), logs_in(record)),
    ExportFormat.LANGFUSE: langfuse.read_record,
    ExportFormat.PHOENIX: phoenix.read_record,
}


def _read_records(path: Path, unread: Unread) -> Iterator[tuple[str, Record]]:
    try:
        yield from _records(path, unread)
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableError(f"{path}: {reason}") from error


def _records(path: Path, unread: Unread) -> Iterator[tuple[str, Record]]:
    name = path.name.removesuffix(".gz")
    with _open(path) as file:
        if name.endswith(".csv"):
            csv.field_size_limit(MOST_CHARACTERS)
            reader = csv.DictReader(_bounded_lines(path, file), restkey="")
            for row in reader:
                yield str(reader.line_num), row
            return
        numbered = enumerate(_bounded_lines(path, file), start=1)
        lines = (numbered_line for numbered_line in numbered if numbered_line[1].strip())
        begin = list(islice(lines, 2))
        read = _lines if _are_lines([line for _, line in begin]) else _values
        values = read(path, chain(begin, lines), unread)
        for place, value in values:
            if isinstance(value, dict):
                yield place, value
            else:
                unread(f"{path}:{place}: expected an object")


@contextmanager
def _open(path: Path) -> Iterator[IO[str]]:
    """Open a regular file: a pipe may never end, and spans and log records are two passes."""
    # O_NONBLOCK: opening a pipe must not wait for a writer.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as raw:
        mode = os.fstat(raw.fileno()).st_mode
        if not stat.S_ISREG(mode):
            kind = next((text for test, text in KINDS if test(mode)), "not a regular file")
            raise UnreadableError(f"{path}: this is {kind}; write the traces to a file first")
        packed = path.suffix == ".gz"
        plain = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw
        yield TextIOWrapper(plain, encoding="utf-8-sig", errors="replace", newline="")


def _bounded_lines(path: Path, file: IO[str]) -> Iterator[str]:
    while line := file.readline(MOST_CHARACTERS + 1):
        if len(line) > MOST_CHARACTERS:
            raise _too_long(path, "line")
        yield line


def _are_lines(begin: Sequence[str]) -> bool:
    """Whether each line is a value of its own, by the first two: one of them may be broken."""
    faults: list[str] = []
    for line in begin:
        try:
            jiter.from_json(line.encode("utf-8", "replace"))
            faults.append("")
        except ValueError as error:
            faults.append(str(error))
    return len(faults) > 1 and "" in faults and not faults[0].startswith("EOF")


def _too_long(path: Path, part: str) -> UnreadableError:
    return UnreadableError(
        f"{path}: a {part} of more than {MOST_CHARACTERS >> 20} Mi characters; write one item per"
        " line (jq -c '.[]')"
    )


def _lines(path: Path, lines: Iterable[NumberedLine], unread: Unread) -> Iterator[tuple[str, Any]]:
    for number, line in lines:
        try:
            yield str(number), jiter.from_json(line.encode("utf-8", "replace"))
        except ValueError as error:
            unread(f"{path}:{number}: not JSON: {str(error).replace(ONE_LINE, '')}")


def _values(
    path: Path, lines: Iterable[NumberedLine], _unread: Unread
) -> Iterator[tuple[str, Any]]:
    """Yield the values of a document: of a list, of an API response with a list, or itself."""
    parts, size = [], 0
    for _, line in lines:
        parts.append(line)
        size += len(line)
        if size > MOST_CHARACTERS:
            raise _too_long(path, "document")
    try:
        document = jiter.from_json("".join(parts).encode("utf-8", "replace"))
    except ValueError as error:
        raise UnreadableError(f"{path}: not JSON: {error}") from error
    if isinstance(document, dict) and isinstance(document.get("data"), list):
        document = document["data"]
    if isinstance(document, list):
        yield from ((f"item {number}", value) for number, value in enumerate(document, start=1))
    else:
        yield "1", document

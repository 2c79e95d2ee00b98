"""The excerpt of a preview: the lines around its first fault, in pieces for markup."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

LINES_AROUND = 3
LONGEST_LINE = 160
LEFT_OF_FAULT = 90
MARKER = re.compile(r"(\[REDACT(?:ED:[a-z0-9_.-]+|ION_FAILED)\])")

PieceKind = Literal["plain", "redacted", "at"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line of one kind; `at` is the character that the fault points at."""

    text: str
    kind: PieceKind


@dataclass(frozen=True, slots=True)
class ExcerptLine:
    """One numbered line; `caret_indent` is set on the line of the first fault."""

    number: int
    pieces: tuple[Piece, ...]
    caret_indent: str | None
    faulty: bool


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The lines shown, and how many above and below are omitted."""

    lines: tuple[ExcerptLine, ...]
    above: int
    below: int
    is_whole: bool


def excerpt(text: str, faults: Sequence[tuple[int, int]]) -> Excerpt:
    """Return the lines around the first (line, column), 1-based in code points.

    Without a position inside the text, its beginning is shown.
    """
    rows = text.split("\n")
    inside = [(line, column) for line, column in faults if 1 <= line <= len(rows)]
    line, column = inside[0] if inside else (0, 0)
    first = max(line - LINES_AROUND, 1)
    last = min(max(line, 1) + LINES_AROUND + (0 if inside else LINES_AROUND), len(rows))
    faulty = {number for number, _ in inside}
    return Excerpt(
        lines=tuple(
            ExcerptLine(
                number,
                *mark_line(rows[number - 1], [column] if number == line else []),
                number in faulty,
            )
            for number in range(first, last + 1)
        ),
        above=first - 1,
        below=len(rows) - last,
        is_whole=last - first + 1 == len(rows) and all(len(row) <= LONGEST_LINE for row in rows),
    )


def mark_line(
    row: str, columns: Iterable[int], longest: int = LONGEST_LINE, room: int = LEFT_OF_FAULT
) -> tuple[tuple[Piece, ...], str | None]:
    """Return a line in pieces, cut around the first of the columns, and the indent of its caret.

    Without a column its beginning, and no caret.
    """
    places = sorted({min(column - 1, len(row)) for column in columns})
    start = max(places[0] - room, 0) if places and len(row) > longest else 0
    end = start + longest
    before, tail = "…" if start else "", "…" if end < len(row) else ""
    indent = " " * len(before + row[start : places[0]]) if places else None
    parts = list[Piece]()
    for place in places:
        if place < end or place == len(row) <= end:
            parts += (
                *pieces(before + row[start:place]),
                Piece(row[place : place + 1] or " ", "at"),
            )
            before, start = "", place + 1
    return (*parts, *pieces(before + row[start:end] + tail)), indent


def pieces(text: str) -> tuple[Piece, ...]:
    """Split off redaction markers, so that a page can highlight them."""
    return tuple(
        Piece(part, "redacted" if MARKER.fullmatch(part) else "plain")
        for part in MARKER.split(text)
        if part
    )

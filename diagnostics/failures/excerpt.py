"""The excerpt of a preview: the lines around its first fault, in pieces for markup."""

import re
from collections.abc import Sequence
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
    faulty: bool
    caret_indent: str | None


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
            _line(number, rows[number - 1], column if number == line else None, number in faulty)
            for number in range(first, last + 1)
        ),
        above=first - 1,
        below=len(rows) - last,
        is_whole=last - first + 1 == len(rows) and all(len(row) <= LONGEST_LINE for row in rows),
    )


def _line(number: int, row: str, column: int | None, faulty: bool) -> ExcerptLine:
    if column is None:
        return ExcerptLine(number, pieces(_shorten(row)), faulty, None)
    start = max(column - 1 - LEFT_OF_FAULT, 0) if len(row) > LONGEST_LINE else 0
    window = row[start : start + LONGEST_LINE]
    before, at, after = (
        window[: column - 1 - start],
        window[column - 1 - start : column - start],
        window[column - start :],
    )
    lead = "…" if start else ""
    tail = "…" if start + LONGEST_LINE < len(row) else ""
    parts = (*pieces(lead + before), Piece(at or " ", "at"), *pieces(after + tail))
    return ExcerptLine(number, parts, faulty, " " * (len(lead) + len(before)))


def _shorten(row: str) -> str:
    return row if len(row) <= LONGEST_LINE else row[:LONGEST_LINE] + "…"


def pieces(text: str) -> tuple[Piece, ...]:
    """Split off redaction markers, so that a page can highlight them."""
    return tuple(
        Piece(part, "redacted" if MARKER.fullmatch(part) else "plain")
        for part in MARKER.split(text)
        if part
    )

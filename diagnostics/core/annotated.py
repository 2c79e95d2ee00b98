"""A text with notes at places in it: the lines around them, numbered, the rest folded away."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diagnostics.core.excerpt import Piece, pieces

LINES_AROUND = 2
MOST_LINES = 160
MOST_NOTES = 60
LONGEST_LINE = 240
LEFT_OF_NOTE = 60


@dataclass(frozen=True, slots=True)
class Note:
    """What is said of a place; line and column are 1-based, in code points."""

    line: int
    column: int
    kind: str
    text: str
    is_fault: bool = False


@dataclass(frozen=True, slots=True)
class NotedLine:
    """One line of the text; `gap` lines were left out before it."""

    number: int
    pieces: tuple[Piece, ...]
    notes: tuple[Note, ...]
    caret_indent: str
    gap: int

    @property
    def is_faulty(self) -> bool:
        """Whether something in it was refused."""
        return any(note.is_fault for note in self.notes)


@dataclass(frozen=True, slots=True)
class Annotated:
    """The lines that are shown, and how many follow or have notes that are not."""

    lines: tuple[NotedLine, ...]
    below: int
    left_out: int


def annotate(text: str, notes: Sequence[Note]) -> Annotated:
    """Show a text with notes; without any, its beginning."""
    rows = text.split("\n")
    shown = sorted(notes, key=lambda note: (note.line, note.column))[:MOST_NOTES]
    numbers = sorted(set(_numbers(len(rows), shown)))[:MOST_LINES]
    lines, before = [], 0
    for number in numbers:
        mine = tuple(note for note in shown if note.line == number)
        lines.append(_line(number, rows[number - 1], mine, number - before - 1))
        before = number
    told = sum(len(line.notes) for line in lines)
    return Annotated(tuple(lines), len(rows) - before, len(notes) - told)


def _numbers(rows: int, notes: Sequence[Note]) -> Iterator[int]:
    if not notes or rows <= MOST_LINES // 4:
        yield from range(1, min(rows, MOST_LINES) + 1)
        return
    for note in notes:
        first = max(note.line - LINES_AROUND, 1)
        yield from range(first, min(note.line + LINES_AROUND, rows) + 1)


def _line(number: int, row: str, notes: tuple[Note, ...], gap: int) -> NotedLine:
    if not notes:
        tail = "…" if len(row) > LONGEST_LINE else ""
        return NotedLine(number, pieces(row[:LONGEST_LINE] + tail), (), "", gap)
    first = notes[0].column
    start = max(first - 1 - LEFT_OF_NOTE, 0) if len(row) > LONGEST_LINE else 0
    end = start + LONGEST_LINE
    lead, tail = "…" if start else "", "…" if end < len(row) else ""
    parts: list[Piece] = list(pieces(lead)) if lead else []
    at = start
    for column in sorted({note.column - 1 for note in notes if note.column <= end}):
        parts += pieces(row[at:column])
        parts.append(Piece(row[column : column + 1] or " ", "at"))
        at = max(column + 1, at)
    parts += pieces(row[at:end] + tail)
    indent = " " * (len(lead) + max(first - 1 - start, 0))
    return NotedLine(number, tuple(parts), notes, indent, gap)

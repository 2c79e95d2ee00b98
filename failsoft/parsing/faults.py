"""Why a text cannot be read: what is wrong, and at which line and column."""

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property

from pydantic import TypeAdapter

from failsoft.events import MAX_ERRORS, ParseErrorType, Repair

AMBIGUOUS_STRING = "one string with one reading; its inner quotes or backslashes are not escaped"


class ParseFault(Exception):  # noqa: N818 - a finding about the text, not an error of the program
    """A text stops being readable at `offset` (code points from 0)."""

    def __init__(self, offset: int, expected: str, error_type: ParseErrorType) -> None:
        """Say what was `expected` at `offset`."""
        super().__init__(expected)
        self.offset = offset
        self.expected = expected
        self.error_type = error_type

    def moved_to(self, offset: int) -> "ParseFault":
        """Tell the same finding at another place of the text."""
        return ParseFault(offset, self.expected, self.error_type)


def unreadable(offset: int, expected: str) -> ParseFault:
    """Find a token that cannot be read, or that has more than one reading."""
    return ParseFault(offset, expected, ParseErrorType.NOT_JSON)


def cut_off(offset: int, expected: str) -> ParseFault:
    """Find that the text ends before the value does."""
    return ParseFault(offset, expected, ParseErrorType.TRUNCATED)


def ambiguous(offset: int) -> ParseFault:
    """Find a string that has no single reading; `offset` is its opening."""
    return ParseFault(offset, AMBIGUOUS_STRING, ParseErrorType.NOT_JSON)


CONTEXT_WIDTH = 60


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Place one offset; the end of the text is one past its last character."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def excerpt(text: str, offset: int) -> str:
    """Show the offending line, at most 120 characters of it, with a caret below."""
    first = text.rfind("\n", 0, offset) + 1
    last = text.find("\n", offset)
    last = len(text) if last < 0 else last
    start, end = max(first, offset - CONTEXT_WIDTH), min(last, offset + CONTEXT_WIDTH)
    shown = "".join(char if char.isprintable() else " " for char in text[start:end])
    return f"{shown}\n{' ' * (offset - start)}^"


class Lines:
    """Places many offsets of one text in logarithmic time each."""

    def __init__(self, text: str) -> None:
        """Remember the text; its line starts are found at the first question."""
        self._text = text

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self._text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Place one offset as line and column."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


# Something the model wrote is not in the value.
LOSSY = frozenset({"comment", "prose", "think_block", "tail_cut", "surplus_closer"})
# Found around the root value, not inside it.
AROUND = frozenset((
    "fence", "prose", "think_block", "tag", "wrapper", "block_quote", "byte_order_mark",
    "repeated_answer", "quoted_answer",
))  # fmt: skip
MORE = "more_repairs"
# One call for all rows: many small models cost more than reading the text.
_REPAIRS: TypeAdapter[tuple[Repair, ...]] = TypeAdapter(tuple[Repair, ...])


class RepairLedger:
    """Repairs in the order of the text; the same finding counts once however often it is met."""

    def __init__(self) -> None:
        """Begin with nothing repaired."""
        self._found: dict[tuple[int, str], None] = {}
        # The token that made it necessary to put in a closer.
        self.blame: int | None = None

    def note(self, offset: int, kind: str) -> None:
        """Write down one repair of `kind` at `offset`."""
        self._found[offset, kind] = None

    def has(self, *kinds: str) -> bool:
        """Whether a repair of one of these kinds was made."""
        return any(kind in kinds for _, kind in self._found)

    def first(self, *kinds: str) -> int | None:
        """Offset of the first repair of one of these kinds."""
        return min((offset for offset, name in self._found if name in kinds), default=None)

    def blamed(self, fault: ParseFault) -> ParseFault:
        """Tell a fault behind a closer that was put in at the token that made it necessary."""
        if self.blame is None or fault.offset <= self.blame:
            return fault
        return fault.moved_to(self.blame)

    def take_over(self, other: "RepairLedger", moved: Callable[[int], int]) -> None:
        """Take over the repairs of a text inside this one."""
        self.blame = None if other.blame is None else moved(other.blame)
        for offset, kind in other._found:
            self.note(moved(offset), kind)

    def touches_root(self) -> bool:
        """Whether the root value itself was repaired, not only what stands around it."""
        return any(kind not in AROUND for _, kind in self._found)

    def repairs(self, text: str) -> tuple[Repair, ...]:
        """Place every repair; past the bound of an event the last one stands for the rest."""
        found, lines = sorted(self._found), Lines(text)
        kept = found if len(found) <= MAX_ERRORS else found[: MAX_ERRORS - 1]
        placed = [_row(lines, offset, kind) for offset, kind in kept]
        rest = found[len(kept) :]
        if rest:
            row = _row(lines, rest[0][0], MORE)
            row["lossless"] = all(kind not in LOSSY for _, kind in rest)
            placed.append(row)
        return _REPAIRS.validate_python(placed)


def _row(lines: Lines, offset: int, kind: str) -> dict[str, object]:
    line, column = lines.place(offset)
    return {"kind": kind, "line": line, "column": column, "lossless": kind not in LOSSY}

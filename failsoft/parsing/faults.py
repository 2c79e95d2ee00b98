"""Parse faults with their cause and place, and the ledger of repairs."""

import re
from bisect import bisect_right
from collections.abc import Callable
from enum import StrEnum
from functools import cached_property
from typing import Self

from pydantic import TypeAdapter

from failsoft.events import AROUND, MAX_ERRORS, ParseErrorType, Repair


class RefusalCause(StrEnum):
    """What is wrong at the place of a refusal, more exactly than the error type says.

    The values are the codes of stored errors; `expected` words them for models and people.
    """

    expected: str

    def __new__(cls, code: str, expected: str) -> Self:
        cause = str.__new__(cls, code)
        cause._value_, cause.expected = code, expected
        return cause

    UNESCAPED_QUOTE = (
        "unescaped_quote",
        'one string with one reading; a quote inside a string is written `\\"`, and this '
        "one is not",
    )
    UNCLOSED_STRING = (
        "unclosed_string",
        "one string with one reading; its closing quote is missing, or a quote inside of "
        'it is not written `\\"`',
    )
    BACKSLASH = (
        "backslash",
        "one string with one reading; a backslash inside a string is written `\\\\`, and "
        "this one is not",
    )
    HALF_CHARACTER = "half_character", "whole characters in this string; it contains half of one"
    NOT_FINITE = "not_finite", "a finite number, a string or null; JSON has no NaN and no Infinity"
    NUMBER_TOO_LARGE = "number_too_large", "a number up to 1.8e308; this one is too large"
    TOO_MANY_DIGITS = (
        "too_many_digits",
        "a number of at most 4,300 digits; a longer one is written as a string",
    )
    LEADING_ZEROS = "leading_zeros", "a number without leading zeros, or a string"
    NUMBER_SEPARATORS = "number_separators", "a number without separators"
    MISSING_QUOTES = "missing_quotes", "quotes around this text"
    LEFT_OUT = "left_out", "every part written out; this stands for something left out"
    CALL_MARKUP = (
        "call_markup",
        "one JSON object or array; this is a tool call as markup, and a part of it is no answer",
    )
    MALFORMED_CALL = "malformed_call", "an answer; the server could not read the model's tool call"
    PROGRAM = "program", "one JSON object or array; this is a statement of a program"
    EXAMPLE = (
        "example",
        "an answer; this text announces an example, a template, or what somebody else said",
    )
    MARKDOWN_LIST = "markdown_list", "one JSON object or array; this is a Markdown list"
    PROSE = "prose", "one JSON object or array; this is prose"
    ONLY_THINKING = "only_thinking", "an answer; there is only thinking"
    OPEN_THINKING = "open_thinking", "every think block closed before the answer"


class ParseFault(Exception):  # noqa: N818 - a finding about the text, not a program error
    """A text is unreadable at `offset` (code points from 0)."""

    def __init__(
        self,
        offset: int,
        expected: str,
        error_type: ParseErrorType,
        cause: RefusalCause | None = None,
    ) -> None:
        super().__init__(expected)
        self.offset = offset
        self.expected = expected
        self.error_type = error_type
        self.cause = cause

    def moved_to(self, offset: int) -> "ParseFault":
        return ParseFault(offset, self.expected, self.error_type, self.cause)


def unreadable(offset: int, expected: str) -> ParseFault:
    """Return the fault of a token without exactly one reading."""
    return ParseFault(offset, expected, ParseErrorType.NOT_JSON)


def cut_off(offset: int, expected: str) -> ParseFault:
    """Return the fault of a text that ends before its value."""
    return ParseFault(offset, expected, ParseErrorType.TRUNCATED)


def caused(
    offset: int, cause: RefusalCause, error_type: ParseErrorType = ParseErrorType.NOT_JSON
) -> ParseFault:
    """Return the fault of a known cause, at the first character that is doubtful."""
    return ParseFault(offset, cause.expected, error_type, cause)


CONTEXT_WIDTH = 60


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the line and column of an offset, from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def offset_of(text: str, line: int, column: int) -> int:
    return sum(len(row) + 1 for row in text.split("\n")[: line - 1]) + column - 1


def excerpt(text: str, offset: int) -> str:
    """Return up to 120 characters of the line at `offset`, with a caret below."""
    first = text.rfind("\n", 0, offset) + 1
    last = text.find("\n", offset)
    last = len(text) if last < 0 else last
    start, end = max(first, offset - CONTEXT_WIDTH), min(last, offset + CONTEXT_WIDTH)
    shown = "".join(char if char.isprintable() else " " for char in text[start:end])
    return f"{shown}\n{' ' * (offset - start)}^"


class Lines:
    """Locates many offsets of one text, in logarithmic time each."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self._text))]

    def place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


# These repairs drop something that the model wrote.
LOSSY = frozenset({"comment", "prose", "think_block", "run_on", "tail_cut", "surplus_closer"})
MORE = "more_repairs"
# One validation for all rows: many small models cost more than parsing.
_REPAIRS: TypeAdapter[tuple[Repair, ...]] = TypeAdapter(tuple[Repair, ...])


class RepairLedger:
    """The repairs of a text; the same repair is recorded once."""

    def __init__(self) -> None:
        self._repairs: dict[tuple[int, str], None] = {}
        # The offset of the token that required the inserted closer.
        self.cause_offset: int | None = None

    def note(self, offset: int, kind: str) -> None:
        self._repairs[offset, kind] = None

    def has(self, *kinds: str) -> bool:
        return any(kind in kinds for _, kind in self._repairs)

    def first(self, *kinds: str) -> int | None:
        return min((offset for offset, name in self._repairs if name in kinds), default=None)

    def moved_to_cause(self, fault: ParseFault) -> ParseFault:
        """Return a fault after an inserted closer, moved to the token that required the closer."""
        if self.cause_offset is None or fault.offset <= self.cause_offset:
            return fault
        return fault.moved_to(self.cause_offset)

    def take_over(self, other: "RepairLedger", moved: Callable[[int], int]) -> None:
        """Add the repairs of a text inside this one."""
        self.cause_offset = None if other.cause_offset is None else moved(other.cause_offset)
        for offset, kind in other._repairs:
            self.note(moved(offset), kind)

    def touches_root(self) -> bool:
        """Whether the root value itself was repaired, not only its surroundings."""
        return any(kind not in AROUND for _, kind in self._repairs)

    def repairs(self, text: str) -> tuple[Repair, ...]:
        """Return the located repairs; beyond the limit of an event, the last one is a summary."""
        repairs, lines = sorted(self._repairs), Lines(text)
        shown = repairs if len(repairs) <= MAX_ERRORS else repairs[: MAX_ERRORS - 1]
        rows = [_row(lines, offset, kind) for offset, kind in shown]
        rest = repairs[len(shown) :]
        if rest:
            row = _row(lines, rest[0][0], MORE)
            row["lossless"] = all(kind not in LOSSY for _, kind in rest)
            rows.append(row)
        return _REPAIRS.validate_python(rows)


def _row(lines: Lines, offset: int, kind: str) -> dict[str, object]:
    line, column = lines.place(offset)
    return {"kind": kind, "line": line, "column": column, "lossless": kind not in LOSSY}

"""Reading the object or array at a known offset, under levels of escapes."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from failsoft.events import ParseErrorType
from failsoft.parsing.escapes import SHORT_ESCAPES
from failsoft.parsing.faults import (
    ParseFault,
    RefusalCause,
    RepairLedger,
    caused,
    cut_off,
    unreadable,
)
from failsoft.parsing.grammar import Grammar
from failsoft.parsing.scalars import FULL_WIDTH, ends_in_escape, find_unescaped
from failsoft.parsing.surroundings import step_over_end
from failsoft.parsing.tracing import Trace

_ESCAPED = re.compile(r"[\[{](?:\s|\\+[nrt]|[\[{]){0,200}\\+\"")
_QUOTE = re.compile('"')
_ESCAPE = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\(?:u([0-9a-fA-F]{4})|(.))",
    re.DOTALL,
)
# A first string or key in doubled quotes; `""` before punctuation is an empty one.
_DOUBLED = re.compile(
    r'[\[{](?:[\s\[{,\d.+-]|true|false|null){0,200}(?:""(?![\s":,}\]])|""""(?=\s*[:,}\]]))'
)
_DOUBLED_RUN = re.compile(r'(?:[^"]+|"")*')
_PAIR_OF_QUOTES = re.compile(r'""')


class Unescaped:
    """The unescaped text of an escaped document, with the mapping back to outer offsets."""

    def __init__(self, text: str, at: int, *, is_csv: bool = False) -> None:
        """Remove one level of escapes, or of doubled quotes, from the document at `at`."""
        escape = _PAIR_OF_QUOTES if is_csv else _ESCAPE
        if is_csv:
            run = _DOUBLED_RUN.match(text, at)
            end = run.end() if run is not None else at
        else:
            end = find_unescaped(_QUOTE, text, at)
            end = end if end >= 0 else len(text) - ends_in_escape(text, at, len(text))
        parts: list[str] = []
        # Offsets after each escape in the unescaped text, and in the outer text.
        self._inner, self._outer = [0], [at]
        length, last = 0, at
        for match in escape.finditer(text, at, end):
            parts += (text[last : match.start()], '"' if is_csv else _decode(match))
            length += match.start() - last + 1
            last = match.end()
            self._inner += (length - 1, length)
            self._outer += (match.start(), last)
        parts.append(text[last:end])
        self.text = "".join(parts)

    def outer_offset(self, offset: int) -> int:
        """Return the offset in the outer text of an offset in the unescaped text."""
        index = bisect_right(self._inner, offset) - 1
        return self._outer[index] + offset - self._inner[index]


def _decode(escape: re.Match[str]) -> str:
    high, low, digits, char = escape.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    return chr(int(digits, 16)) if digits else SHORT_ESCAPES.get(char, char)


_NOT_WITH_A_CLOSER = (
    *("missing_comma", "missing_colon", "surplus_closer", "key_quote", "set", "tuple"),
)
MAX_LEVELS = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    value: Any
    start: int
    end: int
    ledger: RepairLedger


def read_candidate(text: str, at: int, trace: Trace | None, begin: int = 0) -> Candidate:
    """Return the candidate at `at`; what stands before `begin` does not belong to its text."""
    ledger = RepairLedger()
    value, end = _read_levels(text, at, ledger, trace, MAX_LEVELS)
    try:
        end = step_over_end(text, begin, at, end, ledger)
    except ParseFault as fault:
        raise ledger.moved_to_cause(fault) from None
    # Refuse inserted or skipped closers next to other repairs: the reading is not unique.
    if ledger.cause_offset is not None and ledger.has(*_NOT_WITH_A_CLOSER):
        expected = "every bracket closed; more than one repair is needed"
        is_cut = ledger.cause_offset >= len(text.rstrip())
        raise (cut_off if is_cut else unreadable)(ledger.cause_offset, expected)
    surplus = ledger.first("surplus_closer")
    conflicting = ["missing_comma", "missing_colon"]
    if surplus is not None and text[surplus] == "]":
        # `[1,]]` may have lost an opener after its comma.
        conflicting.append("trailing_comma")
    if surplus is not None and ledger.has(*conflicting):
        raise unreadable(surplus, "no more closing brackets than opening ones")
    return Candidate(value, at, end, ledger)


def _read_levels(
    text: str, at: int, ledger: RepairLedger, trace: Trace | None, levels: int
) -> tuple[Any, int]:
    """Read a candidate, removing up to `levels` levels of escapes."""
    is_csv = _DOUBLED.match(text, at) is not None
    if not levels or not (is_csv or _ESCAPED.match(text, at)):
        char = text[at]
        return Grammar(text, ledger, trace).read_root(at, FULL_WIDTH.get(char, char))
    inside, repairs = Unescaped(text, at, is_csv=is_csv), RepairLedger()
    try:
        value, end = _read_levels(inside.text, 0, repairs, trace, levels - 1)
    except ParseFault as fault:
        rest = text[inside.outer_offset(len(inside.text)) :]
        is_cut = fault.error_type is ParseErrorType.TRUNCATED
        if rest if is_csv else (is_cut and rest[1:].strip()):
            # Not every quote is doubled or escaped, so the first one that is, is ambiguous.
            first = text.index('""' if is_csv else '\\"', at)
            raise caused(first, RefusalCause.UNESCAPED_QUOTE) from None
        raise fault.moved_to(inside.outer_offset(fault.offset)) from None
    ledger.note(at, "doubled_quotes" if is_csv else "double_encoding")
    ledger.take_over(repairs, inside.outer_offset)
    if trace is not None:
        trace.move(inside.outer_offset)
    return value, inside.outer_offset(end)

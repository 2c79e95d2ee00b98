"""Finding the only object or array in a text that is the answer."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from failsoft.events import ParseErrorType
from failsoft.parsing.faults import ParseFault, RepairLedger, ambiguous, cut_off, unreadable
from failsoft.parsing.grammar import Grammar
from failsoft.parsing.scalars import FULL_WIDTH, ends_in_escape, find_unescaped
from failsoft.parsing.surroundings import (
    check_before,
    check_outside,
    is_list_of_scalars,
    is_mentioned,
    looks_like_yaml,
    note_surroundings,
    step_over_end,
)
from failsoft.parsing.tracing import Trace, same

_ESCAPED = re.compile(r"[\[{](?:\s|\\+[nrt]|[\[{]){0,200}\\+\"")
_QUOTE = re.compile('"')
_ESCAPE = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\(?:u([0-9a-fA-F]{4})|(.))",
    re.DOTALL,
)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
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
    return chr(int(digits, 16)) if digits else _SHORT.get(char, char)


_NOT_WITH_A_CLOSER = (
    "missing_comma",
    "missing_colon",
    "surplus_closer",
    "key_quote",
    "set",
    "tuple",
)
MAX_LEVELS = 3
MAX_COPIES = 4
MAX_ASIDES = 100
NOTHING = "one JSON object or array"
# Not the brackets of terminal colours.
_OPENER = re.compile("(?<!\x1b)[\\[{［｛]")
# `{step_id}`, `[1]`, `{{name}}`: brackets of prose, with no key in them.
_ASIDE = re.compile(
    r"\[(?:[^\[\]{}\"'“”‘’:=\n]|(?<=\w)['’](?=\w)){0,80}\]|\{(?:[^\[\]{}\"'“”‘’:=\n]|(?<=\w)['’](?=\w)){0,80}\}"
    r"|\{\{[^{}\"':\n]{0,80}\}\}|\[\s*-?[\d.]+\s*,\s*-?[\d.∞]+\s*\)"
)
_SUBSCRIPT = re.compile(r"\[\s?[\"']?[\w .-]{0,60}[\"']?\s?\]")
_AROUND_ASIDE = re.compile(r"[\s:=>(`~]\Z|\A\Z")
_FENCE_BEFORE = re.compile(r"(?:`{3}|~{3})[\w-]*\s*\Z")
_FENCE_BEHIND = re.compile(r"\s*(?:`{3}|~{3})")
# The start of the text or of a line, a fence, a tag, a colon.
_FIRST = re.compile(r"(?:\A|^|[>:]|(?:`{3}|~{3})[\w-]*)\s*\Z", re.MULTILINE)
_BETWEEN = re.compile(r"[\s,;]*(?:(?:`{3}|~{3})[\w-]*\s*){0,2}(?:(?:or|and|then)\b[\s:]*)?")
_BEHIND_ASIDE = re.compile(r"[ \t;.)`~]*(?:\Z|\n|</|<\|)")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value with its span and the repairs inside it."""

    value: Any
    start: int
    end: int
    ledger: RepairLedger


def find_answer(text: str, ledger: RepairLedger, trace: Trace | None = None) -> Candidate:
    """Return the only answer in a text; repairs go to `ledger`, offsets to `trace`.

    Raises ParseFault when there is none, when there are different ones, when it has no single
    reading, or when the surrounding text looks like the rest of the document.
    """
    candidates, asides = _read_all(text, trace)
    if not candidates:
        candidates = [_read_aside(text, asides, trace)]
    answer = candidates[0]
    ledger.take_over(answer.ledger, lambda offset: offset)
    for copy in candidates[1:]:
        ledger.note(copy.start, "repeated_answer")
    spans = sorted([(item.start, item.end) for item in candidates] + asides)
    check_outside(text, [span for span in spans if span[0] < span[1]])
    if looks_like_yaml(text, answer.start, answer.end):
        raise unreadable(0, NOTHING)
    note_surroundings(text, answer.start, candidates[-1].end, ledger)
    return answer


def _read_all(text: str, trace: Trace | None) -> tuple[list[Candidate], list[tuple[int, int]]]:
    candidates: list[Candidate] = []
    asides: list[tuple[int, int]] = []
    opener = _OPENER.search(text)
    while opener is not None:
        at = opener.start()
        end = _aside_end(text, at)
        last_end = candidates[-1].end if candidates else 0
        if end is not None and not _is_answer(text, at, end, last_end):
            asides.append((at, end))
        else:
            end = _add_candidate(text, at, candidates, trace)
        opener = _OPENER.search(text, end)
    return candidates, asides


def _add_candidate(text: str, at: int, candidates: list[Candidate], trace: Trace | None) -> int:
    """Read the candidate at `at` and return its end; a second one must be an equal value."""
    if not candidates:
        check_before(text, at)
        candidates.append(_read_candidate(text, at, trace))
    else:
        last_end = candidates[-1].end
        is_row = text[last_end - 1] == "," or text[last_end:at].strip() == ","
        candidates.append(_read_copy(text, at, candidates[0]))
        if is_row or len(candidates) > MAX_COPIES:
            raise _second_answer(text, at, candidates[0])
    return candidates[-1].end


def _read_copy(text: str, at: int, first: Candidate) -> Candidate:
    try:
        copy = _read_candidate(text, at, None)
    except ParseFault:
        raise _second_answer(text, at, first) from None
    if not same(first.value, copy.value):
        raise _second_answer(text, at, first)
    return copy


def _second_answer(text: str, at: int, first: Candidate) -> ParseFault:
    if looks_like_yaml(text[:at], first.start, first.end):
        return unreadable(0, NOTHING)
    return ParseFault(at, "one answer; this is a second one", ParseErrorType.MULTIPLE_OBJECTS)


def _read_candidate(text: str, at: int, trace: Trace | None) -> Candidate:
    ledger = RepairLedger()
    value, end = _read_levels(text, at, ledger, trace, MAX_LEVELS)
    try:
        end = step_over_end(text, at, end, ledger)
    except ParseFault as fault:
        raise ledger.blamed(fault) from None
    _refuse_combined(text, ledger)
    return Candidate(value, at, end, ledger)


def _refuse_combined(text: str, ledger: RepairLedger) -> None:
    """Refuse inserted or skipped closers next to other repairs: the reading is not unique."""
    if ledger.blame is not None and ledger.has(*_NOT_WITH_A_CLOSER):
        expected = "every bracket closed; more than one repair is needed"
        is_cut = ledger.blame >= len(text.rstrip())
        raise (cut_off if is_cut else unreadable)(ledger.blame, expected)
    surplus = ledger.first("surplus_closer")
    conflicting = ["missing_comma", "missing_colon"]
    if surplus is not None and text[surplus] == "]":
        # `[1,]]` may have lost an opener after its comma.
        conflicting.append("trailing_comma")
    if surplus is not None and ledger.has(*conflicting):
        raise unreadable(surplus, "no more closing brackets than opening ones")


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
        if is_csv and inside.outer_offset(len(inside.text)) < len(text):
            # Not every quote is doubled, so the first doubled one is ambiguous.
            raise ambiguous(text.index('""', at)) from None
        raise fault.moved_to(inside.outer_offset(fault.offset)) from None
    ledger.note(at, "doubled_quotes" if is_csv else "double_encoding")
    ledger.take_over(repairs, inside.outer_offset)
    if trace is not None:
        trace.move(inside.outer_offset)
    return value, inside.outer_offset(end)


def _is_answer(text: str, start: int, end: int, last_end: int) -> bool:
    """Whether brackets without a key are an answer: empty ones, and lists near an answer."""
    if not text[start + 1 : end - 1].strip():
        return not is_mentioned(text, start, end)
    return is_list_of_scalars(text, start, end) and _is_near_answer(text, start, end, last_end)


def _is_near_answer(text: str, start: int, end: int, last_end: int) -> bool:
    """Whether a list is fenced, or separated from an answer by space or `or` only."""
    if _FENCE_BEFORE.search(text, max(0, start - 40), start) and _FENCE_BEHIND.match(text, end):
        return True
    is_near = last_end > 0 and start - last_end <= 200
    if is_near and _BETWEEN.fullmatch(text, last_end, start):
        return _BEHIND_ASIDE.match(text, end) is not None or last_end == start
    gap = _BETWEEN.match(text, end)
    is_followed = gap is not None and _OPENER.match(text, gap.end()) is not None
    return is_followed and _FIRST.search(text, max(0, start - 80), start) is not None


def _aside_end(text: str, at: int) -> int | None:
    """Return the end of brackets in prose; None when an answer may begin at `at`."""
    before = text[at - 1 : at]
    is_quoted = before in ("'", '"', "`") and text[at + 1 : at + 2] == before
    if is_quoted and not text[at + 2 : at + 3].isalnum():
        return at + 1
    if text[at] == "[" and (before.isalnum() or before in ("]", ")")) and before:
        subscript = _SUBSCRIPT.match(text, at)
        if subscript is not None:
            return subscript.end()
    aside = _ASIDE.match(text, at)
    return aside.end() if aside is not None else None


def _read_aside(text: str, asides: list[tuple[int, int]], trace: Trace | None) -> Candidate:
    """Read the only brackets of a text, if they may be an answer instead of prose."""
    candidates: list[Candidate] = []
    for start, end in asides[:MAX_ASIDES]:
        is_isolated = _is_isolated(text, start, end)
        try:
            candidate = _read_candidate(text, start, trace)
        except ParseFault:
            if is_isolated and len(asides) == 1 and _is_whole(text, start, end):
                raise
            continue
        is_list = isinstance(candidate.value, list) and len(candidate.value) > 1
        if _is_whole(text, start, end) or (
            not candidate.ledger.touches_root() and (is_isolated or is_list)
        ):
            candidates.append(candidate)
    if not candidates:
        raise unreadable(0, NOTHING)
    check_before(text, candidates[0].start)
    for candidate in candidates[1:]:
        if not same(candidate.value, candidates[0].value):
            raise _second_answer(text, candidate.start, candidates[0])
    asides[:] = [span for span in asides if span[0] != candidates[0].start]
    return candidates[0]


def _is_isolated(text: str, start: int, end: int) -> bool:
    """Whether brackets follow a colon or begin a line, and end their line."""
    return (
        _AROUND_ASIDE.search(text[max(0, start - 1) : start]) is not None
        and text[max(0, start - 80) : start].rstrip(" \t")[-1:] in ("", ":", "\n", "=", ">")
        and _BEHIND_ASIDE.match(text, end) is not None
    )


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether only a fence surrounds the brackets."""
    head, tail = text[:start].strip(), text[end : end + 200].strip(" \t\r\n;,`~")
    return not tail and re.fullmatch(r"(?:(?:`{3}|~{3})[\w-]*)?", head) is not None

"""Which object or array of a text is the answer: exactly one, or none."""

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
    """The text of a document in another notation and the way back to the text it stands in."""

    def __init__(self, text: str, at: int, *, is_csv: bool = False) -> None:
        """Take one level of escapes, or doubled quotes, off the document that begins at `at`."""
        escape = _PAIR_OF_QUOTES if is_csv else _ESCAPE
        if is_csv:
            whole = _DOUBLED_RUN.match(text, at)
            end = whole.end() if whole is not None else at
        else:
            end = find_unescaped(_QUOTE, text, at)
            end = end if end >= 0 else len(text) - ends_in_escape(text, at, len(text))
        parts: list[str] = []
        # Where the unescaped text is behind an escape, and where that is outside.
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

    def outside(self, offset: int) -> int:
        """Map an offset of the unescaped text to the text around."""
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
    """A value with its place and the repairs inside it."""

    value: Any
    start: int
    end: int
    ledger: RepairLedger


def find_answer(text: str, ledger: RepairLedger, trace: Trace | None = None) -> Candidate:
    """Find the one answer in a text; repairs go to `ledger`, places to `trace`.

    Raises a fault when there is none, when there are different ones, when it has no single
    reading, or when the text around it looks like the rest of the same document.
    """
    found, asides = _read_all(text, trace)
    if not found:
        found = [_read_aside(text, asides, trace)]
    answer = found[0]
    ledger.take_over(answer.ledger, lambda offset: offset)
    for copy in found[1:]:
        ledger.note(copy.start, "repeated_answer")
    spans = sorted([(item.start, item.end) for item in found] + asides)
    check_outside(text, [span for span in spans if span[0] < span[1]])
    if looks_like_yaml(text, answer.start, answer.end):
        raise unreadable(0, NOTHING)
    note_surroundings(text, answer.start, found[-1].end, ledger)
    return answer


def _read_all(text: str, trace: Trace | None) -> tuple[list[Candidate], list[tuple[int, int]]]:
    found: list[Candidate] = []
    asides: list[tuple[int, int]] = []
    opener = _OPENER.search(text)
    while opener is not None:
        at = opener.start()
        end = _aside_end(text, at)
        since = found[-1].end if found else 0
        if end is not None and not _is_answer(text, at, end, since):
            asides.append((at, end))
        else:
            end = _add_candidate(text, at, found, trace)
        opener = _OPENER.search(text, end)
    return found, asides


def _add_candidate(text: str, at: int, found: list[Candidate], trace: Trace | None) -> int:
    """Read the candidate at `at`; a second one must be the same value over again."""
    if not found:
        check_before(text, at)
        found.append(_read_candidate(text, at, trace))
    else:
        since = found[-1].end
        is_row = text[since - 1] == "," or text[since:at].strip() == ","
        found.append(_read_copy(text, at, found[0]))
        if is_row or len(found) > MAX_COPIES:
            raise _second(text, at, found[0])
    return found[-1].end


def _read_copy(text: str, at: int, first: Candidate) -> Candidate:
    try:
        again = _read_candidate(text, at, None)
    except ParseFault:
        raise _second(text, at, first) from None
    if not same(first.value, again.value):
        raise _second(text, at, first)
    return again


def _second(text: str, at: int, first: Candidate) -> ParseFault:
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
    """Refuse closers put in or passed over beside other marks: then more readings are as small."""
    if ledger.blame is not None and ledger.has(*_NOT_WITH_A_CLOSER):
        expected = "every bracket closed; more than one repair is needed"
        is_cut = ledger.blame >= len(text.rstrip())
        raise (cut_off if is_cut else unreadable)(ledger.blame, expected)
    surplus = ledger.first("surplus_closer")
    beside = ["missing_comma", "missing_colon"]
    if surplus is not None and text[surplus] == "]":
        # `[1,]]` may have lost an opener behind its comma.
        beside.append("trailing_comma")
    if surplus is not None and ledger.has(*beside):
        raise unreadable(surplus, "no more closing brackets than opening ones")


def _read_levels(
    text: str, at: int, ledger: RepairLedger, trace: Trace | None, levels: int
) -> tuple[Any, int]:
    """Read a candidate, taking off as many levels of escapes as it was written with."""
    is_csv = _DOUBLED.match(text, at) is not None
    if not levels or not (is_csv or _ESCAPED.match(text, at)):
        char = text[at]
        return Grammar(text, ledger, trace).read_root(at, FULL_WIDTH.get(char, char))
    inside, repairs = Unescaped(text, at, is_csv=is_csv), RepairLedger()
    try:
        value, end = _read_levels(inside.text, 0, repairs, trace, levels - 1)
    except ParseFault as fault:
        if is_csv and inside.outside(len(inside.text)) < len(text):
            # Not every quote is doubled: then the first that is has no single reading.
            raise ambiguous(text.index('""', at)) from None
        raise fault.moved_to(inside.outside(fault.offset)) from None
    ledger.note(at, "doubled_quotes" if is_csv else "double_encoding")
    ledger.take_over(repairs, inside.outside)
    if trace is not None:
        trace.move(inside.outside)
    return value, inside.outside(end)


def _is_answer(text: str, start: int, end: int, since: int) -> bool:
    """Whether brackets without a key are an answer: empty ones, and lists that stand apart."""
    if not text[start + 1 : end - 1].strip():
        return not is_mentioned(text, start, end)
    return is_list_of_scalars(text, start, end) and _stands_beside(text, start, end, since)


def _stands_beside(text: str, start: int, end: int, since: int) -> bool:
    """Whether a list is fenced, or only space or `or` stands between it and an answer."""
    if _FENCE_BEFORE.search(text, max(0, start - 40), start) and _FENCE_BEHIND.match(text, end):
        return True
    is_near = since > 0 and start - since <= 200
    if is_near and _BETWEEN.fullmatch(text, since, start):
        return _BEHIND_ASIDE.match(text, end) is not None or since == start
    beside = _BETWEEN.match(text, end)
    is_followed = beside is not None and _OPENER.match(text, beside.end()) is not None
    return is_followed and _FIRST.search(text, max(0, start - 80), start) is not None


def _aside_end(text: str, at: int) -> int | None:
    """Find where brackets of prose end; None when an answer may begin at `at`."""
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
    """Read the only brackets of a text, if they can be an answer and not only prose."""
    read: list[Candidate] = []
    for start, end in asides[:MAX_ASIDES]:
        is_apart = _stands_apart(text, start, end)
        try:
            candidate = _read_candidate(text, start, trace)
        except ParseFault:
            if is_apart and len(asides) == 1 and _is_whole(text, start, end):
                raise
            continue
        is_list = isinstance(candidate.value, list) and len(candidate.value) > 1
        if _is_whole(text, start, end) or (
            not candidate.ledger.touches_root() and (is_apart or is_list)
        ):
            read.append(candidate)
    if not read:
        raise unreadable(0, NOTHING)
    check_before(text, read[0].start)
    for other in read[1:]:
        if not same(other.value, read[0].value):
            raise _second(text, other.start, read[0])
    asides[:] = [span for span in asides if span[0] != read[0].start]
    return read[0]


def _stands_apart(text: str, start: int, end: int) -> bool:
    """Whether brackets stand behind a colon or at the start of a line, and end their line."""
    return (
        _AROUND_ASIDE.search(text[max(0, start - 1) : start]) is not None
        and text[max(0, start - 80) : start].rstrip(" \t")[-1:] in ("", ":", "\n", "=", ">")
        and _BEHIND_ASIDE.match(text, end) is not None
    )


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether nothing but a fence stands around the brackets."""
    head, tail = text[:start].strip(), text[end : end + 200].strip(" \t\r\n;,`~")
    return not tail and re.fullmatch(r"(?:(?:`{3}|~{3})[\w-]*)?", head) is not None

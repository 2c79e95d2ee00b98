"""Which object or array of a text is the answer: exactly one, or none."""
# ruff: noqa: RUF001 - look-alike characters are what this module is about

import re
from dataclasses import dataclass
from typing import Any

from diagnostics.core.events import ParseErrorType
from diagnostics.core.recovery.faults import Fault, cut_off, unreadable
from diagnostics.core.recovery.grammar import Grammar
from diagnostics.core.recovery.ledger import Ledger
from diagnostics.core.recovery.lexing import FULL_WIDTH
from diagnostics.core.recovery.nesting import Unescaped, is_escaped
from diagnostics.core.recovery.sameness import same
from diagnostics.core.recovery.surroundings import (
    check_before,
    check_outside,
    looks_like_yaml,
    note_surroundings,
    step_over_end,
)
from diagnostics.core.recovery.tracing import Trace

_NOT_WITH_A_CLOSER = (
    *("missing_comma", "missing_colon", "surplus_closer", "key_quote", "set", "tuple"),
)
MAX_LEVELS = 3
MAX_COPIES = 4
MAX_ASIDES = 100
NOTHING = "one JSON object or array"

_OPENER = re.compile("[\\[{［｛]")
# `{step_id}`, `[1]`, `{{name}}`: brackets of prose, with no key in them.
_ASIDE = re.compile(
    r"\[(?:[^\[\]{}\"'“”‘’:=\n]|(?<=\w)['’](?=\w)){0,80}\]|\{(?:[^\[\]{}\"'“”‘’:=\n]|(?<=\w)['’](?=\w)){0,80}\}"
    r"|\{\{[^{}\"':\n]{0,80}\}\}|\[\s*-?[\d.]+\s*,\s*-?[\d.∞]+\s*\)"
)
_SUBSCRIPT = re.compile(r"\[\s?[\"']?[\w .-]{0,60}[\"']?\s?\]")
_AROUND_ASIDE = re.compile(r"[\s:=>(`~]\Z|\A\Z")
_BEHIND_ASIDE = re.compile(r"[ \t;.)`~]*(?:\Z|\n|</|<\|)")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value with its place and the repairs inside it."""

    value: Any
    start: int
    end: int
    ledger: Ledger


def find_answer(text: str, ledger: Ledger, trace: Trace | None = None) -> Candidate:
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


def _read_all(
    text: str, trace: Trace | None
) -> tuple[list[Candidate], list[tuple[int, int]]]:
    found: list[Candidate] = []
    asides: list[tuple[int, int]] = []
    opener = _OPENER.search(text)
    while opener is not None:
        at = opener.start()
        end = _aside_end(text, at)
        if end is not None:
            asides.append((at, end))
        else:
            end = _add_candidate(text, at, found, trace)
        opener = _OPENER.search(text, end)
    return found, asides


def _add_candidate(
    text: str, at: int, found: list[Candidate], trace: Trace | None
) -> int:
    """Read the candidate at `at`; a second one must be the same value over again."""
    if not found:
        check_before(text, at)
        found.append(_read_candidate(text, at, trace))
    else:
        found.append(_read_copy(text, at, found[0]))
        if len(found) > MAX_COPIES:
            raise _second(at)
    return found[-1].end


def _read_copy(text: str, at: int, first: Candidate) -> Candidate:
    try:
        again = _read_candidate(text, at, None)
    except Fault:
        raise _second(at) from None
    if not same(first.value, again.value):
        raise _second(at)
    return again


def _second(at: int) -> Fault:
    return Fault(
        at, "one answer; this is a second one", ParseErrorType.MULTIPLE_OBJECTS
    )


def _read_candidate(text: str, at: int, trace: Trace | None) -> Candidate:
    ledger = Ledger()
    value, end = _read_levels(text, at, ledger, trace, MAX_LEVELS)
    try:
        end = step_over_end(text, at, end, ledger)
    except Fault as fault:
        raise ledger.blamed(fault) from None
    _refuse_combined(text, ledger)
    return Candidate(value, at, end, ledger)


def _refuse_combined(text: str, ledger: Ledger) -> None:
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
    text: str, at: int, ledger: Ledger, trace: Trace | None, levels: int
) -> tuple[Any, int]:
    """Read a candidate, taking off as many levels of escapes as it was written with."""
    if not levels or not is_escaped(text, at):
        char = text[at]
        return Grammar(text, ledger, trace).read_root(at, FULL_WIDTH.get(char, char))
    inside, repairs = Unescaped(text, at), Ledger()
    try:
        value, end = _read_levels(inside.text, 0, repairs, trace, levels - 1)
    except Fault as fault:
        raise fault.moved_to(inside.outside(fault.offset)) from None
    ledger.note(at, "double_encoding")
    ledger.take_over(repairs, inside.outside)
    if trace is not None:
        trace.move(inside.outside)
    return value, inside.outside(end)


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


def _read_aside(
    text: str, asides: list[tuple[int, int]], trace: Trace | None
) -> Candidate:
    """Read the only brackets of a text, if they can be an answer and not only prose."""
    read: list[Candidate] = []
    for start, end in asides[:MAX_ASIDES]:
        is_apart = _stands_apart(text, start, end)
        try:
            candidate = _read_candidate(text, start, trace)
        except Fault:
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
    for other in read[1:]:
        if not same(other.value, read[0].value):
            raise _second(other.start)
    asides[:] = [span for span in asides if span[0] != read[0].start]
    return read[0]


def _stands_apart(text: str, start: int, end: int) -> bool:
    """Whether brackets stand behind a colon or at the start of a line, and end their line."""
    return (
        _AROUND_ASIDE.search(text[max(0, start - 1) : start]) is not None
        and text[max(0, start - 80) : start].rstrip(" \t")[-1:]
        in ("", ":", "\n", "=", ">")
        and _BEHIND_ASIDE.match(text, end) is not None
    )


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether nothing but a fence stands around the brackets."""
    head, tail = text[:start].strip(), text[end : end + 200].strip(" \t\r\n;,`~")
    return not tail and re.fullmatch(r"(?:(?:`{3}|~{3})[\w-]*)?", head) is not None

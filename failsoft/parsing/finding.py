"""Finding the only answer in a text.

1. Go through the text that no value has claimed, up to the end of the answer's turn: drop
   thinking, read calls written as markup, skip brackets of prose (`{step_id}`, `[1]`: no answers,
   unless nothing else can be one), read every object and array as a candidate.
2. One candidate, or equal ones under equal labels, is the answer; so are one or more calls.
3. Refuse it when the rest of the text belongs to the same document, record or program, or says
   that it is no answer.
"""

import re
from typing import Any

from failsoft.events import ParseErrorType
from failsoft.parsing import calls, thinking
from failsoft.parsing.candidates import Candidate, read_candidate
from failsoft.parsing.faults import ParseFault, RefusalCause, RepairLedger, caused, unreadable
from failsoft.parsing.makers import END_MARKS, declines
from failsoft.parsing.prose import (
    announcement,
    check_elements,
    check_program,
    check_prose,
    label,
    refusal,
)
from failsoft.parsing.scalars import ODD_SPACES
from failsoft.parsing.surroundings import (
    check_before,
    check_outside,
    is_list_of_scalars,
    is_mentioned,
    note_surroundings,
    resembles_yaml,
)
from failsoft.parsing.tracing import Trace, same

MAX_COPIES = 4
NOTHING = "one JSON object or array"
_MARK = re.compile(f"{thinking.MARKS}|(?P<call>{calls.MARKS})|(?P<end>{END_MARKS})", re.MULTILINE)
_HINTS = (*thinking.HINTS, *calls.HINTS, "[e~[")
# From one call of Hermes to the next.
_NEXT_CALL = re.compile(r"\s*</(?:\w+:)?tool_call>\s*<(?:\w+:)?tool_call>\s*")
# The longest mark, and how far to look for one at most.
_LONGEST_MARK, _FURTHEST = 600, 20_000
# Marks of turns and channels, which hold no text.
_TURN = r"<\|[^|\n]{0,200}\|>|<｜[^<>\n]{0,80}｜>|</?s>|<(?:end_of_turn|start_of_turn|eos|bos|pad)>"
# A fence is a whole run of its sign: one read as several would be split in every possible way.
_FENCE = r"(?:`{3,}(?!`)|~{3,}(?!~))\w*"
_BLANK = re.compile(rf"(?:[\s{''.join(ODD_SPACES)}]|{_FENCE}|{_TURN})*")
_LIST_ITEM = re.compile(r"^[ \t]{0,8}(?:[-*+•]|\d{1,3}[.)])[ \t]+\S", re.MULTILINE)
# The end of a word and the beginning of the next; of fixed length, so that a search is linear.
_WORDS = re.compile(r"[^\W\d_][^\W_]\W{0,3}\s\W{0,3}[^\W\d_]")
Span = tuple[int, int]
MAX_ASIDES = 100
# What a server sends behind its last event.
_STREAM_END = "[DONE]"
# Not the brackets of terminal colours.
OPENER = re.compile("(?<!\x1b)[\\[{［｛]")
# `{step_id}`, `[1]`, `{{name}}`: brackets of prose, with no key in them; DSPy's names of fields.
_ASIDE = re.compile(
    r"\[(?:[^\[\]{}\"'“”‘’:=\n]|(?<=\w)['’](?=\w)){0,80}\]|\{(?:[^\[\]{}\"'“”‘’:=\n]|(?<=\w)['’](?=\w)){0,80}\}"
    r"|\[\[ ## [\w ]{1,80} ## \]\]|\{\{[^{}\"':\n]{0,80}\}\}|\[\s*-?[\d.]+\s*,\s*-?[\d.∞]+\s*\)"
)
_SUBSCRIPT = re.compile(r"\[\s?[\"']?[\w .-]{0,60}[\"']?\s?\]")
_AROUND_ASIDE = re.compile(r"[\s:=>(`~]\Z|\A\Z")
_FENCE_BEFORE = re.compile(r"(?:`{3}|~{3})[\w-]*\s*\Z")
_FENCE_BEHIND = re.compile(r"\s*(?:`{3}|~{3})")
# The start of the text or of a line, a fence, a tag, a colon.
_FIRST = re.compile(r"(?:\A|^|[>:]|(?:`{3}|~{3})[\w-]*)\s*\Z", re.MULTILINE)
_BETWEEN = re.compile(r"[\s,;]*(?:(?:`{3}|~{3})[\w-]*\s*){0,2}(?:(?:or|and|then)\b[\s:]*)?")
_BEHIND_ASIDE = re.compile(r"[ \t;.)`~]*(?:\Z|\n|</|<\|)")


def find_answer(text: str, ledger: RepairLedger, trace: Trace | None = None) -> Candidate:
    """Return the only answer in a text; repairs go to `ledger`, offsets to `trace`.

    Raises ParseFault when there is none, when there are different ones, when it has no single
    reading, or when the surrounding text is the rest of a document or says it is no answer.
    """
    search = _Search(text, trace)
    search.run()
    outside = thinking.blank(text, search.thinking + search.beyond)
    for start, _ in search.thinking:
        ledger.note(start, "think_block")
    for start, _ in search.beyond:
        ledger.note(start, "run_on")
    answers = search.calls or search.candidates
    if search.calls and search.candidates:
        raise caused(search.calls[0].start, RefusalCause.CALL_MARKUP)
    if not answers:
        answers = _bracketed(search, outside)
    first, last = answers[0], answers[-1]
    spans = sorted([(item.start, item.end) for item in answers] + search.asides)
    check_outside(outside, [span for span in spans if span[0] < span[1]])
    if not search.calls:
        check_program(outside, first.start, last.end)
        check_elements(outside, first.start, last.end)
    if resembles_yaml(outside, first.start, first.end):
        raise unreadable(0, NOTHING)
    check_prose(outside, first.start, last.end, is_empty=_is_empty(first.value))
    is_one = not search.calls and all(same(first.value, item.value) for item in answers)
    answer = _repeated(answers, ledger) if is_one else _called(answers, ledger, trace)
    note_surroundings(outside, first.start, last.end, ledger)
    return answer


def _repeated(candidates: list[Candidate], ledger: RepairLedger) -> Candidate:
    ledger.take_over(candidates[0].ledger, lambda offset: offset)
    for copy in candidates[1:]:
        ledger.note(copy.start, "repeated_answer")
    return candidates[0]


def _called(candidates: list[Candidate], ledger: RepairLedger, trace: Trace | None) -> Candidate:
    for call in candidates:
        ledger.take_over(call.ledger, lambda offset: offset)
        ledger.note(call.start, "tool_call")
    values: list[Any] = [call.value for call in candidates]
    value = values[0] if len(values) == 1 else values
    if trace is not None:
        trace.root = value
        places = {number: (call.start, call.start) for number, call in enumerate(candidates)}
        trace.remember(value, candidates[0].start, places if len(values) > 1 else {})
    return Candidate(value, candidates[0].start, candidates[-1].end, ledger)


def _bracketed(search: "_Search", outside: str) -> list[Candidate]:
    """Return the only brackets of a text without another answer."""
    if search.deferred is not None:
        raise search.deferred
    candidates = read_asides(outside, search.asides, search.trace)
    if not candidates:
        raise _nothing(outside, has_thinking=bool(search.thinking))
    check_before(outside, 0, candidates[0].start)
    for candidate in candidates[1:]:
        if not same(candidate.value, candidates[0].value):
            raise _second_answer(outside, candidate.start, candidates[0])
    search.asides[:] = [span for span in search.asides if span[0] != candidates[0].start]
    return candidates[:1]


def _nothing(outside: str, *, has_thinking: bool) -> ParseFault:
    """Return the fault of a text without any object or array: what it is instead."""
    if _BLANK.fullmatch(outside):
        if has_thinking:
            return caused(0, RefusalCause.ONLY_THINKING, ParseErrorType.EMPTY_OUTPUT)
        return ParseFault(0, "an answer; there is none", ParseErrorType.EMPTY_OUTPUT)
    if declines(outside):
        return refusal()
    markup = calls.call_markup(outside)
    if markup is not None:
        return caused(markup, RefusalCause.CALL_MARKUP)
    if len(_LIST_ITEM.findall(outside)) > 1:
        return caused(0, RefusalCause.MARKDOWN_LIST)
    return caused(0, RefusalCause.PROSE) if _WORDS.search(outside) else unreadable(0, NOTHING)


def _is_empty(value: object) -> bool:
    if not isinstance(value, dict | list):
        return False
    return all(map(_is_empty, value.values() if isinstance(value, dict) else value))


def _second_answer(text: str, at: int, first: Candidate) -> ParseFault:
    if resembles_yaml(text[:at], first.start, first.end):
        return unreadable(0, NOTHING)
    return ParseFault(at, "one answer; this is a second one", ParseErrorType.MULTIPLE_OBJECTS)


def aside_end(text: str, at: int) -> int | None:
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


def is_answer(text: str, start: int, end: int, last_end: int) -> bool:
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
    is_followed = gap is not None and OPENER.match(text, gap.end()) is not None
    return is_followed and _FIRST.search(text, max(0, start - 80), start) is not None


def read_asides(text: str, asides: list[Span], trace: Trace | None) -> list[Candidate]:
    """Return the brackets of a text without another answer that may be the answer."""
    candidates: list[Candidate] = []
    for start, end in asides[:MAX_ASIDES]:
        if text[start:end] == _STREAM_END:
            continue
        is_isolated = (
            _AROUND_ASIDE.search(text[max(0, start - 1) : start]) is not None
            and text[max(0, start - 80) : start].rstrip(" \t")[-1:] in ("", ":", "\n", "=", ">")
            and _BEHIND_ASIDE.match(text, end) is not None
        )
        try:
            candidate = read_candidate(text, start, trace)
        except ParseFault:
            if is_isolated and len(asides) == 1 and _is_whole(text, start, end):
                raise
            continue
        is_list = isinstance(candidate.value, list) and len(candidate.value) > 1
        if _is_whole(text, start, end) or (
            not candidate.ledger.touches_root() and (is_isolated or is_list)
        ):
            candidates.append(candidate)
    return candidates


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether only a fence surrounds the brackets."""
    head, tail = text[:start].strip(), text[end : end + 200].strip(" \t\r\n;,`~")
    return not tail and re.fullmatch(r"(?:(?:`{3}|~{3})[\w-]*)?", head) is not None


class _Search:
    def __init__(self, text: str, trace: Trace | None) -> None:
        self.text = text
        self.trace = trace
        self.candidates: list[Candidate] = []
        self.calls: list[Candidate] = []
        self.asides: list[Span] = []
        self.thinking: list[Span] = []
        # What follows the end of the answer's turn.
        self.beyond: list[Span] = []
        # The first fault in what a lone closing mark showed to be thinking.
        self.deferred: ParseFault | None = None
        # Where the text behind the last block of thinking begins.
        self._begin = 0
        self._has_marks = any(hint in text for hint in _HINTS)
        # The next mark, if it is known, and the offset before which there is none.
        self._mark: re.Match[str] | None = None
        self._clear = 0
        self._reach = _LONGEST_MARK

    def run(self) -> None:
        """Collect candidates, calls, asides and blocks of thinking."""
        at, opener = 0, OPENER.search(self.text)
        while True:
            if opener is not None and opener.start() < at:
                opener = OPENER.search(self.text, at)
            stop = opener.start() if opener is not None else len(self.text)
            mark = self._next_mark(at, stop) if self._has_marks else None
            if mark is None and opener is None:
                return
            try:
                at = self._take_mark(mark) if mark is not None else self._take_opener(stop)
            except ParseFault as fault:
                at = self._defer(fault, mark.start() if mark is not None else stop)

    def _next_mark(self, at: int, stop: int) -> re.Match[str] | None:
        """Return the next mark that begins at `stop` or before, looking at no text twice."""
        if self._mark is not None and self._mark.start() < at:
            self._mark = None
        if self._mark is None and self._clear <= stop:
            begin, end = max(at, self._clear), stop + self._reach
            self._mark = _MARK.search(self.text, begin, end)
            self._clear = self._mark.start() if self._mark is not None else end - _LONGEST_MARK + 1
            self._reach = min(2 * self._reach, _FURTHEST)
        return self._mark if self._mark is not None and self._mark.start() <= stop else None

    def _take_mark(self, mark: re.Match[str]) -> int:
        """Take a call or a block of thinking; return the offset behind it."""
        start, end = mark.span()
        if mark.lastgroup == "call":
            call = calls.read_call(
                self.text, start, lambda at: read_candidate(self.text, at, None, self._begin)
            )
            self.calls.append(call)
            return call.end
        if thinking.is_quoted(self.text, start, self._begin):
            return end
        if mark.lastgroup == "end":
            if not (self.candidates or self.calls) or _BLANK.fullmatch(self.text, end):
                return end
            # The turn that holds an answer ends here: what follows is left.
            self.beyond.append((start, len(self.text)))
            return len(self.text)
        if thinking.is_closing(mark):
            self._forget(end)
            return end
        block_end = thinking.block_end(self.text, mark)
        if block_end is None:
            return end
        self.thinking.append((start, block_end))
        self._begin = block_end
        return block_end

    def _take_opener(self, at: int) -> int:
        """Take brackets of prose or a candidate; return the offset behind it."""
        end = aside_end(self.text, at)
        last_end = self.candidates[-1].end if self.candidates else 0
        is_glued = bool(self.candidates) and at == last_end and not self.text.startswith("[^", at)
        if end is not None and not (is_glued or is_answer(self.text, at, end, last_end)):
            self.asides.append((at, end))
            return end
        if self.candidates:
            self.candidates.append(self._read_copy(at))
        else:
            check_before(self.text, self._begin, at)
            self.candidates.append(read_candidate(self.text, at, self.trace, self._begin))
        return self.candidates[-1].end

    def _read_copy(self, at: int) -> Candidate:
        """Read a further candidate: equal to the first under an equal label, or one more call."""
        first, last_end = self.candidates[0], self.candidates[-1].end
        is_row = self.text[last_end - 1] == "," or self.text[last_end:at].strip() == ","
        is_call = _NEXT_CALL.fullmatch(self.text, last_end, at) is not None
        try:
            copy = read_candidate(self.text, at, None, self._begin)
        except ParseFault:
            if is_call and calls.are_calls(first.value):
                raise
            raise _second_answer(self.text, at, first) from None
        first_label = label(self.text, self._begin, first.start)
        is_copy = same(first.value, copy.value) and first_label.fits(label(self.text, last_end, at))
        is_one_more = is_copy and len(self.candidates) < MAX_COPIES
        is_next_call = is_call and calls.are_calls(first.value, copy.value)
        if is_row or not (is_one_more or is_next_call):
            raise _second_answer(self.text, at, first)
        return copy

    def _defer(self, fault: ParseFault, at: int) -> int:
        """Return the end of a lone closing mark behind a fault: the text before is thinking."""
        closing = thinking.lone_closing(self.text, at) if self._has_marks else None
        if closing is None or fault.cause is RefusalCause.OPEN_THINKING:
            raise self._declined_before(at) or fault
        self.deferred = self.deferred or fault
        self._forget(closing)
        return closing

    def _declined_before(self, at: int) -> ParseFault | None:
        """Return a refusal before the first value, or before `at`: it need not be readable."""
        first = min([item.start for item in (*self.candidates, *self.calls)] + [at])
        announced = announcement(self.text, self._begin, first)
        is_refusal = announced is not None and announced.error_type is ParseErrorType.REFUSAL
        return announced if is_refusal else None

    def _forget(self, end: int) -> None:
        """Take everything before `end` as thinking."""
        self.candidates, self.calls, self.asides = [], [], []
        self.thinking = [(0, end)]
        self._begin = end

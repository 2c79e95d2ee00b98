"""Brackets in prose, `{step_id}` and `[1]`: no answers, unless nothing else can be one."""

import re

from failsoft.parsing.candidates import Candidate, read_candidate
from failsoft.parsing.faults import ParseFault
from failsoft.parsing.surroundings import is_list_of_scalars, is_mentioned
from failsoft.parsing.tracing import Trace

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

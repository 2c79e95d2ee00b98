"""The bracket structure of a text: where objects and arrays begin, end, or fail to end."""

import re
from dataclasses import dataclass

MAX_DEPTH = 64

_MARK = re.compile(r'["\\{}\[\]]')
_OPENERS = {"}": "{", "]": "["}


@dataclass(frozen=True, slots=True)
class Span:
    """An outermost object or array, `text[start:end]`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Structure:
    """What one pass over a text finds; offsets are of code points."""

    spans: tuple[Span, ...]
    # The outermost opener that is never closed, and the string that is never closed within it.
    unclosed: int | None = None
    open_string: int | None = None
    # The bracket that is one too many (design: depth 64).
    too_deep: int | None = None


def read_structure(text: str) -> Structure:
    """Find the outermost spans in one pass; quotes count inside brackets only: prose is free."""
    spans: list[Span] = []
    stack: list[str] = []
    start, string_at, escaped_at = 0, None, -1
    for match in _MARK.finditer(text):
        mark, at = match.group(), match.start()
        if string_at is not None:
            if mark == "\\" and escaped_at != at:
                escaped_at = at + 1
            elif mark == '"' and escaped_at != at:
                string_at = None
        elif mark in "{[":
            start = at if not stack else start
            stack.append(mark)
            if len(stack) > MAX_DEPTH:
                return Structure(tuple(spans), too_deep=at)
        elif stack and mark == '"':
            string_at = at
        elif stack and mark in _OPENERS:
            # A closer of the wrong kind ends the span too; the parser judges what is there.
            stack.pop()
            if not stack:
                spans.append(Span(start, at + 1))
    return Structure(
        tuple(spans), unclosed=start if stack else None, open_string=string_at
    )

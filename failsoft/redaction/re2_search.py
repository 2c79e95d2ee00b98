"""Searching by RE2 without the wrappers of its binding, which cost more than a search."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import re2

Span = tuple[int, int]
WINDOW = 2_048


def make_options(memory_bytes: int = 8 << 20) -> Any:  # noqa: ANN401 - no types
    """Return the options of all patterns: bytes, quiet, without groups."""
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = memory_bytes
    options.encoding = re2.Options.Encoding.LATIN1
    return options


def asker(pattern: bytes) -> Callable[[bytes], list[int]]:
    """Return a function that says, by a list that is not empty, that a text matches."""
    asked = re2.Set.SearchSet(make_options())
    asked.Add(pattern)
    asked.Compile()
    answer: Callable[[bytes], list[int]] = asked._set.Match
    return answer


def locator(
    pattern: bytes, is_longest: bool = False, reach: int = 0
) -> Callable[[bytes, int], Span | None]:
    """Return a function that finds the next match from a place on.

    With a `reach`, longer matches may be missed, and what has no end on a page without
    line breaks is not looked for to its end once for each place it may begin.
    """
    options = make_options()
    options.longest_match = is_longest
    search = re2.compile(pattern, options)._regexp.Match
    unanchored = re2._Anchor.UNANCHORED

    def locate(body: bytes, at: int) -> Span | None:
        found = search(unanchored, body, at, len(body))
        return found[0] if found and found[0][0] >= 0 else None

    def locate_near(body: bytes, at: int) -> Span | None:
        size = len(body)
        while at < size:
            end = min(size, at + WINDOW)
            found = search(unanchored, body, at, end)
            if found and found[0][0] >= 0:
                place: Span = found[0]
                return place
            at = size if end == size else end - reach
        return None

    return locate_near if reach else locate


def spans_of(locate: Callable[[bytes, int], Span | None], body: bytes) -> Iterator[Span]:
    """Return all matches, one after the other."""
    span = locate(body, 0)
    while span:
        yield span
        span = locate(body, max(span[1], span[0] + 1))


MOST_RULES = 100
MOST_PATTERN_CHARACTERS = 500
MOST_PROGRAM = 20_000
MEMORY_BYTES = 16 << 20
RANK = 2


@dataclass(frozen=True, slots=True)
class OwnRule:
    """A pattern as it was written and the kind of its marker; group 1, if any, is masked."""

    kind: str
    pattern: str


class BadPatternError(ValueError):
    """the pattern does not compile under RE2"""


class OwnRules:
    """Rules of one project, compiled."""

    def __init__(self, rules: Sequence[OwnRule]) -> None:
        """Compile; raises BadPatternError with what RE2 says of the first bad pattern."""
        self._rules = [(compile_pattern(rule.pattern), rule.kind) for rule in rules]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def find(self, body: bytes) -> Iterator[tuple[int, int, str, int]]:
        """Yield (start, end, kind, rank) of what to mask in an ASCII view."""
        for pattern, kind in self._rules:
            for found in pattern.finditer(body):
                group = 1 if found.re.groups and found.span(1)[0] >= 0 else 0
                start, end = found.span(group)
                if start < end:
                    yield start, end, kind, RANK


def compile_pattern(pattern: str) -> Any:  # noqa: ANN401 - the binding has no types
    """Compile a pattern under RE2; BadPatternError says what is wrong with it."""
    if not pattern or len(pattern) > MOST_PATTERN_CHARACTERS:
        raise BadPatternError(f"a pattern has 1 to {MOST_PATTERN_CHARACTERS} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES
    try:
        compiled = re2.compile(pattern.encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        raise BadPatternError(_said(error)) from error
    if compiled.programsize > MOST_PROGRAM:
        raise BadPatternError("pattern too large")
    if compiled.search(b"") is not None:
        raise BadPatternError("the pattern matches the empty text")
    return compiled


def _said(error: Exception) -> str:
    said = error.args[0] if error.args else error
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)

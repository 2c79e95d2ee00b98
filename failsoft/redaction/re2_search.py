"""RE2 searches without the wrappers of its binding, which cost more than a search."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import thread_time
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


def set_matcher(pattern: bytes) -> Callable[[bytes], list[int]]:
    """Return a function that returns a non-empty list when a text matches."""
    pattern_set = re2.Set.SearchSet(make_options())
    pattern_set.Add(pattern)
    pattern_set.Compile()
    match: Callable[[bytes], list[int]] = pattern_set._set.Match
    return match


def locator(
    pattern: bytes, is_longest: bool = False, reach: int = 0
) -> Callable[[bytes, int], Span | None]:
    """Return a function that finds the next match from an offset.

    With a `reach`, longer matches may be missed; this keeps the search linear on a page
    without line breaks.
    """
    options = make_options()
    options.longest_match = is_longest
    search = re2.compile(pattern, options)._regexp.Match
    unanchored = re2._Anchor.UNANCHORED

    def locate(body: bytes, at: int) -> Span | None:
        match = search(unanchored, body, at, len(body))
        return match[0] if match and match[0][0] >= 0 else None

    def locate_near(body: bytes, at: int) -> Span | None:
        size = len(body)
        while at < size:
            end = min(size, at + WINDOW)
            match = search(unanchored, body, at, end)
            if match and match[0][0] >= 0:
                span: Span = match[0]
                return span
            at = size if end == size else end - reach
        return None

    return locate_near if reach else locate


def spans_of(locate: Callable[[bytes, int], Span | None], body: bytes) -> Iterator[Span]:
    span = locate(body, 0)
    while span:
        yield span
        span = locate(body, max(span[1], span[0] + 1))


MOST_RULES = 100
MOST_PATTERN_CHARACTERS = 500
MOST_PROGRAM = 20_000
MEMORY_BYTES = 16 << 20
RANK = 2
# RE2 may read to the end of a text for each match: a few times what ordinary rules take.
START_SECONDS = 0.05
BYTE_SECONDS = 10e-6


@dataclass(frozen=True, slots=True)
class OwnRule:
    """A pattern and the kind of its marker; group 1, if any, is masked."""

    kind: str
    pattern: str


class BadPatternError(ValueError):
    """the pattern does not compile under RE2"""


class SlowRulesError(Exception):
    """the rules of a project take too long for a text"""


class OwnRules:
    def __init__(self, rules: Sequence[OwnRule]) -> None:
        """Compile the rules; BadPatternError has the message of RE2 for the first bad pattern."""
        self._rules = [(compile_pattern(rule.pattern), rule.kind) for rule in rules]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def find(self, body: bytes) -> Iterator[tuple[int, int, str, int]]:
        """Yield (start, end, kind, rank) of what to mask in a view, or in text as UTF-8.

        SlowRulesError if the rules take more time than the bytes allow.
        """
        until = thread_time() + START_SECONDS + len(body) * BYTE_SECONDS
        for pattern, kind in self._rules:
            if thread_time() > until:
                raise SlowRulesError
            for match in pattern.finditer(body):
                if thread_time() > until:
                    raise SlowRulesError
                group = 1 if match.re.groups and match.span(1)[0] >= 0 else 0
                start, end = match.span(group)
                if start < end:
                    yield start, end, kind, RANK


def compile_pattern(pattern: str) -> Any:  # noqa: ANN401 - the binding has no types
    if not pattern or len(pattern) > MOST_PATTERN_CHARACTERS:
        raise BadPatternError(f"a pattern has 1 to {MOST_PATTERN_CHARACTERS} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES
    try:
        compiled = re2.compile(pattern.encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        message = error.args[0] if error.args else error
        text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        raise BadPatternError(text) from error
    if compiled.programsize > MOST_PROGRAM:
        raise BadPatternError("pattern too large")
    if compiled.search(b"") is not None:
        raise BadPatternError("the pattern matches the empty text")
    return compiled

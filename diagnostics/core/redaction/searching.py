"""Searching by RE2 without the wrappers of its binding, which cost more than a search."""

from collections.abc import Callable, Iterator
from typing import Any

import re2

Span = tuple[int, int]
WINDOW = 2_048


def make_options(memory_bytes: int = 8 << 20) -> Any:  # noqa: ANN401 - no types
    """Give the options of all patterns: bytes, quiet, without groups."""
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = memory_bytes
    options.encoding = re2.Options.Encoding.LATIN1
    return options


def asker(pattern: bytes) -> Callable[[bytes], list[int]]:
    """Give a function that says, by a list that is not empty, that a text matches."""
    asked = re2.Set.SearchSet(make_options())
    asked.Add(pattern)
    asked.Compile()
    answer: Callable[[bytes], list[int]] = asked._set.Match
    return answer


def locator(
    pattern: bytes, is_longest: bool = False, reach: int = 0
) -> Callable[[bytes, int], Span | None]:
    """Give a function that finds the next match from a place on.

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
    """Give all matches, one after the other."""
    span = locate(body, 0)
    while span:
        yield span
        span = locate(body, max(span[1], span[0] + 1))

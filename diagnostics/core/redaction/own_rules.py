"""Rules that a project adds: RE2 patterns of unknown make, so linear and bounded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import re2

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

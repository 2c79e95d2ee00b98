"""Texts from outside in Markdown: as code that ends where it should, whatever they contain."""

import re
import unicodedata
from collections.abc import Iterator

from diagnostics.figures import shorten

LONGEST = 1_000
_TICKS = re.compile("`+")
# Control, format, surrogate: nobody sees them, and a language model reads them all the same.
_UNSEEN = frozenset({"Cc", "Cf", "Cs"})
_VARIATIONS = range(0xE0100, 0xE01F0)


def code_span(text: object) -> str:
    """Return a text in one line as code; an empty one says so outside of it.

    The marks are longer than any run of backticks in the text (CommonMark, 6.1).
    """
    line = shorten(_visible(" ".join(str(text).split())), LONGEST)
    if not line:
        return "(empty)"
    marks = "`" * (_longest_run(line) + 1)
    gap = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{marks}{gap}{line}{gap}{marks}"


def code_block(text: str) -> Iterator[str]:
    """Yield the lines of a text between fences longer than any run of backticks in it."""
    fence = "`" * max(_longest_run(text) + 1, 3)
    yield f"{fence}text"
    yield from (_visible(line) for line in text.splitlines())
    yield fence


def _longest_run(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


def _visible(text: str) -> str:
    return "".join(char if _is_seen(char) else "\N{REPLACEMENT CHARACTER}" for char in text)


def _is_seen(char: str) -> bool:
    if char == "\t":
        return True
    return unicodedata.category(char) not in _UNSEEN and ord(char) not in _VARIATIONS

"""JSON inside another notation: one level of escapes taken off, with every offset remembered."""

import re
from bisect import bisect_right

from diagnostics.core.recovery.lexing import ends_in_escape, find_unescaped

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


def is_escaped(text: str, at: int) -> bool:
    """Whether the object or array that opens at `at` is written with escaped quotes."""
    return _ESCAPED.match(text, at) is not None


def is_doubled(text: str, at: int) -> bool:
    """Whether the object or array that opens at `at` is written as a field of CSV is."""
    return _DOUBLED.match(text, at) is not None


class Unescaped:
    """The text of a document in another notation and the way back to the text it stands in."""

    def __init__(self, text: str, at: int, *, is_csv: bool = False) -> None:
        """Take one level of escapes, or doubled quotes, off the document that begins at `at`."""
        escape = _PAIR_OF_QUOTES if is_csv else _ESCAPE
        end = _end_of_doubled(text, at) if is_csv else _end_of_escaped(text, at)
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


def _end_of_escaped(text: str, at: int) -> int:
    end = find_unescaped(_QUOTE, text, at)
    return end if end >= 0 else len(text) - ends_in_escape(text, at, len(text))


def _end_of_doubled(text: str, at: int) -> int:
    whole = _DOUBLED_RUN.match(text, at)
    return whole.end() if whole is not None else at


def _decode(escape: re.Match[str]) -> str:
    high, low, digits, char = escape.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    return chr(int(digits, 16)) if digits else _SHORT.get(char, char)

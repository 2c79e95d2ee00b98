"""JSON inside a JSON string: one level of escapes taken off, with every offset remembered."""

import re
from bisect import bisect_right

_ESCAPED = re.compile(r"[\[{](?:\s|\\[nrt]|[\[{]){0,200}\\+\"")
_RUN = re.compile(r"(?:[^\"\\]++|\\.)*+", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def is_escaped(text: str, at: int) -> bool:
    """Whether the object or array that opens at `at` is written with escaped quotes."""
    return _ESCAPED.match(text, at) is not None


class Unescaped:
    """The text of an escaped document and the way back to the text it stands in."""

    def __init__(self, text: str, at: int) -> None:
        """Take one level of escapes off the document that begins at `at`."""
        found = _RUN.match(text, at)
        end = found.end() if found is not None else at
        parts: list[str] = []
        # Where the unescaped text is behind an escape, and where that is outside.
        self._inner, self._outer = [0], [at]
        length, last = 0, at
        for escape in _ESCAPE.finditer(text, at, end):
            parts += (text[last : escape.start()], _decode(escape))
            length += escape.start() - last + 1
            last = escape.end()
            self._inner += (length - 1, length)
            self._outer += (escape.start(), last)
        parts.append(text[last:end])
        self.text = "".join(parts)

    def outside(self, offset: int) -> int:
        """Map an offset of the unescaped text to the text around."""
        index = bisect_right(self._inner, offset) - 1
        return self._outer[index] + offset - self._inner[index]


def _decode(escape: re.Match[str]) -> str:
    digits, char = escape.groups()
    return chr(int(digits, 16)) if digits else _SHORT.get(char, char)

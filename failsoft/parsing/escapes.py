"""Escapes in strings, judged by the whole document: `\\frac` and `C:\\temp` are rarely meant."""

import re
from collections.abc import Iterator

from failsoft.parsing.faults import RefusalCause, caused
from failsoft.parsing.makers import MAKERS

_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r?\n)|(.)|\Z)|([\x00-\x1f])", re.DOTALL
)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\", '"': '"'}
_LETTERS = frozenset("bfnrt")
_HEX = frozenset("0123456789abcdefABCDEF")
# `\\u{1F600}` is a character to JavaScript only.
_CODE_POINT = re.compile(r"\{[0-9a-fA-F]{1,6}\}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")
_TEX = frozenset(MAKERS["tex"]["commands"])
_CONTROL = re.compile(r"\\[bf]")
_SPELLED = re.compile(r"\\(.)([A-Za-z]*)", re.DOTALL)
# `C:\\temp`, `.\\new`, a network path; formulas.
_DRIVE = re.compile(r"(?:\A|[\s'\"(=;,])[A-Za-z]:(\\)[bfnrt]\w")
_PATH_OR_FORMULA = re.compile(
    r"(?:\A|[\s'\"(=;,])(?:[A-Za-z]:|\.{1,2}|\\)\\|\$|\\[A-Za-z]+\{|\\[(\[]"
)


class Escapes:
    """The escapes of the strings of one document, in their order."""

    def __init__(self) -> None:
        """Begin a document."""
        # The first backslash that begins no escape, and the first escape that may be one, too.
        self._kept: int | None = None
        self._doubtful: int | None = None

    def decode(self, raw: str, at: int, start: int) -> "_DecodedString":
        """Return the text between the quotes of a string that opens at `at`, decoded.

        Raises ParseFault where a backslash has no single reading: it is kept in one place and
        an escape in another, or it reads as a control character that nobody writes.
        """
        drive = _DRIVE.search(raw)
        if drive is not None:
            raise caused(start + drive.start(1), RefusalCause.BACKSLASH)
        decoded = _DecodedString(raw)
        if decoded.fault is not None:
            raise caused(start + decoded.fault, RefusalCause.BACKSLASH)
        if _SURROGATE.search(decoded.text):
            raise caused(at, RefusalCause.HALF_CHARACTER)
        self._judge(raw, start, decoded.repairs.get("kept_backslash"))
        return decoded

    def _judge(self, raw: str, start: int, kept: int | None) -> None:
        if kept is not None and self._kept is None:
            self._kept = start + kept
        if self._doubtful is None:
            doubtful = next(_doubtful_breaks(raw), None)
            self._doubtful = None if doubtful is None else start + doubtful
        if self._kept is not None and self._doubtful is not None:
            raise caused(self._doubtful, RefusalCause.BACKSLASH)


def _doubtful_breaks(raw: str) -> Iterator[int]:
    """Yield the line breaks and tabs before a letter that may be parts of a path or a formula."""
    is_likely = _PATH_OR_FORMULA.search(raw) is not None
    for escape in _SPELLED.finditer(raw):
        char, letters = escape.groups()
        if char in "nrt" and letters and (is_likely or char + letters in _TEX):
            yield escape.start()


class _DecodedString:
    """The raw text between two quotes, decoded; its repairs as kind and offset.

    A backslash that begins no escape is kept, unless the string also has real escapes. Such a
    string may be a path (`C:\\Users\\new`).
    """

    def __init__(self, raw: str) -> None:
        self.repairs: dict[str, int] = {}
        self._escapes = 0
        self._odd: int | None = None
        self.text = _PAIR.sub(_join_pair, _ESCAPE.sub(self._decode, raw))

    @property
    def fault(self) -> int | None:
        """The first backslash without a single reading."""
        if self._odd is not None:
            return self._odd
        return self.repairs.get("kept_backslash") if self._escapes else None

    def _note(self, offset: int, kind: str) -> None:
        self.repairs.setdefault(kind, offset)

    def _decode(self, match: re.Match[str]) -> str:
        unicode, hexadecimal, line_break, char, control = match.groups()
        at = match.start()
        if control is not None:
            self._note(at, "raw_newline" if control in "\r\n" else "control_character")
            return control
        if line_break is not None:
            self._note(at, "line_continuation")
            return ""
        if unicode is not None or hexadecimal is not None:
            self._escapes += 1
            if hexadecimal is not None:
                self._note(at, "hex_escape")
            return chr(int(unicode or hexadecimal, 16))
        return self._decode_short(char or "", match)

    def _decode_short(self, char: str, match: re.Match[str]) -> str:
        following = match.string[match.end() : match.end() + 1]
        if char in _SHORT and char:
            self._escapes += char in _LETTERS or char == "\\"
            if char in "bf" and following.isalpha():
                self._doubt(match.start())
            return _SHORT[char]
        if char and char in "'`“”„‘’‚":
            self._note(match.start(), "escaped_quote")
            return char
        if char == "u" and _CODE_POINT.match(match.string, match.end()):
            self._doubt(match.start())
        if char in ("u", "U") and following in _HEX and following and _is_broken(match, char):
            self._doubt(match.start())
        self._note(match.start(), "kept_backslash")
        return "\\" + char

    def _doubt(self, offset: int) -> None:
        self._odd = offset if self._odd is None else self._odd


def _is_broken(match: re.Match[str], char: str) -> bool:
    """Whether `\\u` looks like an incomplete escape, or like an eight-digit one of Python."""
    digits = match.string[match.end() : match.end() + (3 if char == "u" else 8)]
    return char == "u" or (len(digits) == 8 and all(digit in _HEX for digit in digits))


def _join_pair(match: re.Match[str]) -> str:
    high, low = ord(match[1]), ord(match[2])
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def has_doubtful_escapes(text: str) -> bool:
    """Whether a text may contain `\\b` or `\\f`, which are rarely meant."""
    # One character is found much faster than two, and two by a pattern than by `in`.
    return "\\" in text and _CONTROL.search(text) is not None


def doubtful_in_valid(text: str) -> int | None:
    """Return the first `\\b` or `\\f` before a letter in valid JSON; None without one.

    Raises ParseFault at it where the escapes of the text spell several commands of TeX.
    """
    if not has_doubtful_escapes(text):
        return None
    first, commands = None, 0
    for escape in _SPELLED.finditer(text):
        char, letters = escape.groups()
        commands += char in _LETTERS and char + letters in _TEX
        if first is None and char in "bf" and letters:
            first = escape.start()
    if first is not None and commands > 1:
        raise caused(first, RefusalCause.BACKSLASH)
    return first

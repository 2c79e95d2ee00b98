"""What stands between the quotes of a string: escapes, line breaks, backslashes meant as such."""
# ruff: noqa: RUF001 - look-alike characters are what this module is about

import re
from dataclasses import dataclass, field

_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r?\n)|(.)|\Z)|([\x00-\x1f])", re.DOTALL
)
_SHORT = {
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "/": "/",
    "\\": "\\",
    '"': '"',
}
_LETTERS = frozenset("bfnrt")
_HEX = frozenset("0123456789abcdefABCDEF")
# `\\u{1F600}` is a character to JavaScript only.
_CODE_POINT = re.compile(r"\{[0-9a-fA-F]{1,6}\}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")


@dataclass(slots=True)
class Body:
    """The text of a string, its repairs (offset into the body, kind), and whether it is certain."""

    text: str
    repairs: list[tuple[int, str]] = field(default_factory=list)
    certain: bool = True


@dataclass(slots=True)
class _Tally:
    """What kinds of backslashes a string has: a mixture has no single reading."""

    escapes: int = 0
    kept: int = 0
    repairs: dict[str, int] = field(default_factory=dict)
    certain: bool = True

    def note(self, offset: int, kind: str) -> None:
        self.repairs.setdefault(kind, offset)


def read_body(raw: str) -> Body:
    """Decode the raw text between two quotes; `certain` is False when it has several readings.

    A backslash that begins no escape is kept, unless the string also holds real escapes: then
    it may be half a path (`C:\\Users\\new`), and nothing says which half.
    """
    tally = _Tally()
    text = _ESCAPE.sub(lambda match: _decode(match, tally), raw)
    text = _PAIR.sub(_join_pair, text)
    if _SURROGATE.search(text) or (tally.kept and tally.escapes):
        tally.certain = False
    found = sorted((offset, kind) for kind, offset in tally.repairs.items())
    return Body(text, found, tally.certain)


def _decode(match: re.Match[str], tally: _Tally) -> str:
    unicode, hexadecimal, line_break, char, control = match.groups()
    at = match.start()
    if control is not None:
        tally.note(at, "raw_newline" if control in "\r\n" else "control_character")
        return control
    if line_break is not None:
        tally.note(at, "line_continuation")
        return ""
    if unicode is not None or hexadecimal is not None:
        tally.escapes += 1
        if hexadecimal is not None:
            tally.note(at, "hex_escape")
        return chr(int(unicode or hexadecimal, 16))
    return _decode_short(char or "", at, match, tally)


def _decode_short(char: str, at: int, match: re.Match[str], tally: _Tally) -> str:
    if char in _SHORT and char:
        tally.escapes += char in _LETTERS or char == "\\"
        return _SHORT[char]
    if char and char in "'`“”„‘’‚":
        tally.note(at, "escaped_quote")
        return char
    following = match.string[match.end() : match.end() + 1]
    if char == "u" and _CODE_POINT.match(match.string, match.end()):
        tally.certain = False
    if char in ("u", "U") and following in _HEX and following and _is_broken(match, char):
        tally.certain = False
    tally.kept += 1
    tally.note(at, "kept_backslash")
    return "\\" + char


def _is_broken(match: re.Match[str], char: str) -> bool:
    """Whether a `\\u` looks like an escape that lost digits, or like Python's eight-digit one."""
    digits = match.string[match.end() : match.end() + (3 if char == "u" else 8)]
    return char == "u" or (len(digits) == 8 and all(digit in _HEX for digit in digits))


def _join_pair(match: re.Match[str]) -> str:
    high, low = ord(match[1]), ord(match[2])
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))

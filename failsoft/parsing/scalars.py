"""Values without quotes: numbers and literals of JSON, JSON5 and Python, and single words."""

import math
import re
from dataclasses import dataclass
from typing import Any

# Longer integers cannot be serialized again: the conversion limit of Python.
MAX_DIGITS = 4300
JSON_LITERALS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_PYTHON_ONLY: dict[str, bool | None] = {"True": True, "False": False, "None": None}
LITERALS = JSON_LITERALS | _PYTHON_ONLY
_ANY_CASE = re.compile(r"(?i:true|false|null|none)(?![\w-])")
# Words that mean a value, an absence or an omission in some language: never a plain string.
_NO_WORDS = frozenset((
    "undefined", "nan", "inf", "infinity", "nil", "void", "yes", "no", "on", "off", "y", "n",
    "t", "f", "tr", "tru", "fa", "fal", "fals", "nu", "nul", "non", "or", "and", "not", "etc",
    "rest", "omitted", "unchanged", "snip", "snipped", "truncated", "elided", "ellipsis",
    "wahr", "falsch", "ja", "nein", "vrai", "faux", "oui", "verdadero", "verdadeiro",
    "falso", "sí", "sim", "não", "vero", "waar", "onwaar", "истина", "ложь", "да", "нет",
    "真", "假", "是", "否", "无", "空", "はい", "いいえ", "예", "아니요", "नहीं", "हाँ", "نعم", "لا",
))  # fmt: skip
_WORD = re.compile(r"(?=[_-]*[^\W_])(?!(?i:true|false|null|none)[\w-])[^\W\d](?:[\w-]*\w)?")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_LOOSE_NUMBER = re.compile(
    r"([+-]?)(?:(0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)|(0[oO][0-7]+|0[bB][01]+)"
    r"|((?:(?:0|[1-9]\d*(?:_\d+)*)(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+)?))",
    re.ASCII,
)


def begins_literal(text: str, at: int) -> bool:
    return _ANY_CASE.match(text, at) is not None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value and the kind of repair that it needed, if any."""

    value: Any
    kind: str | None = None
    is_word: bool = False
    is_number: bool = False


def read_scalar(token: str) -> Scalar | None:
    """Return the value of one bare token; None when it has no single reading."""
    if token in LITERALS:
        return Scalar(LITERALS[token], "python_literal" if token in _PYTHON_ONLY else None)
    if _ANY_CASE.fullmatch(token):
        literal = LITERALS.get(token.lower())
        return Scalar(literal, "literal_case")
    if _WORD.fullmatch(token):
        # A fraction or a Roman numeral is a number to Unicode, but not a digit.
        is_plain = token.lower() not in _NO_WORDS and (token[0] == "_" or token[0].isalpha())
        return Scalar(token, "bare_value", is_word=True) if is_plain else None
    if len(token) > MAX_DIGITS:
        return None
    if _JSON_NUMBER.fullmatch(token):
        return _number(token, None)
    match = _LOOSE_NUMBER.fullmatch(token)
    if match is None:
        return None
    sign, hexadecimal, octal_or_binary, decimal = match.groups()
    if decimal is None:
        value = int((hexadecimal or octal_or_binary).replace("_", ""), 0)
        return Scalar(-value if sign == "-" else value, "number_form", is_number=True)
    return _number(sign.replace("+", "") + decimal.replace("_", ""), "number_form")


def _number(digits: str, kind: str | None) -> Scalar | None:
    if not any(mark in digits for mark in ".eE"):
        return Scalar(int(digits), kind, is_number=True)
    value = float(digits)
    return Scalar(value, kind, is_number=True) if math.isfinite(value) else None


# Every quote with the characters that may close it.
CLOSERS = {
    '"': '"',
    "'": "'",
    "`": "`´",
    "´": "´",
    "«": "»",
    "»": "«",
    "“": '”“"',
    "”": '”"',
    "„": '“”"',
    "‘": "’‘'",
    "’": "’'",
    "‚": "‘’'",
    "＂": "＂",
    "＇": "＇",
}
QUOTE_KINDS = {
    "'": "single_quotes",
    "`": "back_quotes",
    "´": "back_quotes",
    "＂": "full_width_punctuation",
    "＇": "full_width_punctuation",
    **dict.fromkeys("“”„‘’‚«»", "smart_quotes"),
}
QUOTES = frozenset(CLOSERS)
FULL_WIDTH = dict(zip("，、：；｛｝［］（）＝", ",,:;{}[]()=", strict=True))
ODD_SPACES = frozenset(
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u180e\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202f\u205f\u2060\u3000\ufeff\u0085\u000b\u000c"
)
MATCHING = {"{": "}", "[": "]", "(": ")"}
SPACE = re.compile(r"[ \t\r\n]*")
# Members and elements that need no repair, with the mark after them.
PLAIN_KEY = re.compile(r'[ \t\r\n]*"([^"\'\\\x00-\x1f]*)"[ \t\r\n]*:(?!=)[ \t\r\n]*')
_PLAIN = (
    r'[ \t\r\n]*(?:"([^"\\\x00-\x1f]*)"'
    r"|(-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?)|(true|false|null))[ \t\r\n]*"
)
PLAIN_MEMBER = re.compile(_PLAIN + r"([,}])")
PLAIN_ELEMENT = re.compile(_PLAIN + r"([,\]])")
# The same in other quotes, without quotes, and as Python literals; the group tells which.
_LOOSE = r"'([^'\\\x00-\x1f]*)'|“([^“”\"\\\x00-\x1f]*)”|`([^`\\$\x00-\x1f]*)`"
LOOSE_KEY = re.compile(
    rf"[ \t\r\n]*(?!'[^':]*\")(?:{_LOOSE}|([A-Za-z_][A-Za-z0-9_]*))[ \t\r\n]*:(?![=/])[ \t\r\n]*"
)
LOOSE_MEMBER = re.compile(rf"[ \t\r\n]*(?:{_LOOSE}|(True|False|None))[ \t\r\n]*([,}}])")
LOOSE_ELEMENT = re.compile(rf"[ \t\r\n]*(?:{_LOOSE}|(True|False|None))[ \t\r\n]*([,\]])")
LOOSE_KINDS = ("", "single_quotes", "smart_quotes", "back_quotes")


def find_unescaped(marks: re.Pattern[str], text: str, at: int) -> int:
    """Return the start of the first match that is not escaped; -1 without one."""
    begin = at
    while match := marks.search(text, at):
        offset = match.start()
        if not ends_in_escape(text, begin, offset):
            return offset
        begin = at = offset + 1
    return -1


def ends_in_escape(text: str, begin: int, end: int) -> bool:
    """Whether an odd number of backslashes precedes `end`."""
    before = text[begin:end]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


BARE_KEY = re.compile(r"[^\W\d][\w$-]*|\$[\w$-]*|[0-9]+")
BARE = re.compile(
    r"(?:[^\\\s,;:=\[\]{}()\"'`´“”„‘’‚«»＂＇<>，、：；｛｝［］（）＝#/\x00-\x1f]|/(?![/*])|<(?![/|!])|>"
    r"|\\(?![nrt](?!\w)))+"
)

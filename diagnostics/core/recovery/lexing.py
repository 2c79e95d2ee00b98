"""The alphabet of damaged JSON: quotes, spaces, punctuation, and the patterns of plain tokens."""
# ruff: noqa: RUF001 - look-alike characters are what this module is about

import re

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
# A member and an element that need no repair, up to the mark behind them.
PLAIN_KEY = re.compile(r'[ \t\r\n]*"([^"\'\\\x00-\x1f]*)"[ \t\r\n]*:(?!=)[ \t\r\n]*')
_PLAIN = (
    r'[ \t\r\n]*(?:"([^"\\\x00-\x1f]*)"'
    r"|(-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?)|(true|false|null))[ \t\r\n]*"
)
PLAIN_MEMBER = re.compile(_PLAIN + r"([,}])")
PLAIN_ELEMENT = re.compile(_PLAIN + r"([,\]])")
# The same in other quotes, without quotes, and in Python's words; the group says which it was.
_LOOSE = r"'([^'\\\x00-\x1f]*)'|“([^“”\"\\\x00-\x1f]*)”|`([^`\\$\x00-\x1f]*)`"
LOOSE_KEY = re.compile(
    rf"[ \t\r\n]*(?!'[^':]*\")(?:{_LOOSE}|([A-Za-z_][A-Za-z0-9_]*))[ \t\r\n]*:(?![=/])[ \t\r\n]*"
)
LOOSE_MEMBER = re.compile(rf"[ \t\r\n]*(?:{_LOOSE}|(True|False|None))[ \t\r\n]*([,}}])")
LOOSE_ELEMENT = re.compile(rf"[ \t\r\n]*(?:{_LOOSE}|(True|False|None))[ \t\r\n]*([,\]])")
LOOSE_KINDS = ("", "single_quotes", "smart_quotes", "back_quotes")
LITERALS = {"true": True, "false": False, "null": None}


def find_unescaped(marks: re.Pattern[str], text: str, at: int) -> int:
    """Return where the first match begins that no backslash escapes; -1 without one."""
    begin = at
    while match := marks.search(text, at):
        place = match.start()
        if not ends_in_escape(text, begin, place):
            return place
        begin = at = place + 1
    return -1


def ends_in_escape(text: str, begin: int, end: int) -> bool:
    """Whether an odd number of backslashes stands right before `end`."""
    before = text[begin:end]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


BARE_KEY = re.compile(r"[^\W\d][\w$-]*|\$[\w$-]*|[0-9]+")
BARE = re.compile(
    r"(?:[^\\\s,;:=\[\]{}()\"'`´“”„‘’‚«»＂＇<>，、：；｛｝［］（）＝#/\x00-\x1f]|/(?![/*])|<(?![/|!])|>"
    r"|\\(?![nrt](?!\w)))+"
)

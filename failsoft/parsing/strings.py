"""Strings in any quotes, with inner quotes only where the closing quote is unambiguous."""

import re
from enum import Enum

from failsoft.parsing.faults import ParseFault, ambiguous, cut_off, unreadable
from failsoft.parsing.scalars import (
    BARE,
    BARE_KEY,
    CLOSERS,
    FULL_WIDTH,
    QUOTE_KINDS,
    QUOTES,
    SPACE,
    find_unescaped,
    read_scalar,
)
from failsoft.parsing.scanning import Scanner

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


class _Decoding:
    """The raw text between two quotes, decoded; its repairs as kind and offset.

    A backslash that begins no escape is kept, unless the string also has real escapes. Such a
    string may be a path (`C:\\Users\\new`) and is not certain.
    """

    def __init__(self, raw: str) -> None:
        self.repairs: dict[str, int] = {}
        self._escapes = self._kept = 0
        self._is_odd = False
        self.text = _PAIR.sub(_join_pair, _ESCAPE.sub(self._decode, raw))

    @property
    def is_certain(self) -> bool:
        is_mixed = self._kept and self._escapes
        return not (self._is_odd or is_mixed or _SURROGATE.search(self.text))

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
        if char in _SHORT and char:
            self._escapes += char in _LETTERS or char == "\\"
            return _SHORT[char]
        if char and char in "'`“”„‘’‚":
            self._note(match.start(), "escaped_quote")
            return char
        following = match.string[match.end() : match.end() + 1]
        if char == "u" and _CODE_POINT.match(match.string, match.end()):
            self._is_odd = True
        if char in ("u", "U") and following in _HEX and following and _is_broken(match, char):
            self._is_odd = True
        self._kept += 1
        self._note(match.start(), "kept_backslash")
        return "\\" + char


def _is_broken(match: re.Match[str], char: str) -> bool:
    """Whether `\\u` looks like an incomplete escape, or like an eight-digit one of Python."""
    digits = match.string[match.end() : match.end() + (3 if char == "u" else 8)]
    return char == "u" or (len(digits) == 8 and all(digit in _HEX for digit in digits))


def _join_pair(match: re.Match[str]) -> str:
    high, low = ord(match[1]), ord(match[2])
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


_CLOSING = {closers: re.compile(f"[{closers}]") for closers in set(CLOSERS.values())}
_CLOSING_TRIPLE = {quote: re.compile(quote * 3) for quote in "\"'"}
_SMART = re.compile("[“”„]")
_SMART_SINGLE = re.compile("[‘’‚]")
_INCHES = re.compile(r"(?<![\w])[0-9]+(?:[.,][0-9]+)?[\"'”’][\s.)-]\Z")
# `„x"`: a quotation that opens low and closes with a straight quote.
_LOW_QUOTED = re.compile(r"[„‚][^„‚“”\"']{0,200}\Z")
# The end of a string that has swallowed the comma or colon after it.
_SWALLOWED = re.compile(r"[,:]\s*\Z")
# `the users' page`.
_PLURAL = re.compile(r"s['’] [a-z]")
_APOSTROPHES = frozenset("'’")


class Role(Enum):
    """The role of a string; the value is what may follow its closing quote."""

    KEY = frozenset(":=")
    MEMBER = frozenset({",", "}", "]", ")", ";", ""})
    ELEMENT = frozenset({",", "}", "]", ")", ";", "", ":"})


class Strings(Scanner):
    """Reads string tokens and the strings joined to them."""

    def read_text(self, at: int, role: Role) -> tuple[str, int]:
        """Return a string with the strings joined to it, by `+` or, in an object, by adjacency."""
        first, end = self.read_string(at, role)
        parts = [first]
        while True:
            next_at, char = self.glance(end)
            if char == "+":
                following, char = self.glance(next_at + 1)
                if char not in QUOTES:
                    raise unreadable(following, "a string after `+`")
            elif char in QUOTES and role is Role.MEMBER and not self.begins_key(next_at):
                following = next_at
            else:
                return "".join(parts), end
            self.ledger.note(next_at, "joined_strings")
            part, end = self.read_string(following, role)
            parts.append(part)

    def read_string(self, at: int, role: Role) -> tuple[str, int]:
        """Return the text of one string token and the offset after its closing quote."""
        quote = self.text[at]
        if quote in _CLOSING_TRIPLE and self.text.startswith(quote * 3, at):
            return self._read_triple(at, quote, role)
        close = self.next_quote(at + 1, quote)
        if close < 0:
            raise cut_off(at, "the closing quote of this string")
        if not self._closes(close, role):
            close = self.find_close(at, close, role)
        elif quote in "“„‘‚":
            self._refuse_mixed(at, close)
        return self.take_string(at, close), close + 1

    def take_string(self, at: int, close: int) -> str:
        """Return the decoded string between two quotes; repairs are recorded."""
        kind = QUOTE_KINDS.get(self.text[at])
        if kind is not None:
            self.ledger.note(at, kind)
        raw = self.text[at + 1 : close]
        if self.text[at] == "`" and "${" in raw:
            raise ambiguous(at)
        return self._decode(raw, at, at + 1)

    def next_quote(self, at: int, quote: str) -> int:
        """Return the next unescaped quote that may close `quote`; -1 without one."""
        return find_unescaped(_CLOSING[CLOSERS[quote]], self.text, at)

    def begins_key(self, at: int) -> bool:
        """Whether there is a key with its colon at `at`."""
        quote = self.text[at : at + 1]
        if quote in QUOTES:
            close = self.next_quote(at + 1, quote)
            return close >= 0 and self.glance(close + 1)[1] in (":", "=")
        word = BARE_KEY.match(self.text, at)
        if word is None:
            return False
        mark, char = self.glance(word.end())
        return char == "=" or (char == ":" and not self.text.startswith("://", mark))

    def find_close(self, at: int, close: int, role: Role) -> int:
        """Return the closing quote of a string with inner quotes of the same kind.

        The first quote followed by punctuation closes the string, if the quotes before it are
        paired. An inner quote followed by punctuation is ambiguous, and so is a string in
        doubled quotes.
        """
        quote, first, inner = self.text[at], close, []
        while True:
            inner.append(close)
            close = self.next_quote(close + 1, quote)
            if close < 0:
                raise self._not_one_string(at, first)
            char = self._plain_next(close + 1)
            if char == ":" and role is not Role.KEY:
                raise self._not_one_string(at, first)
            if char in role.value and (char != ")" or self.inside_parentheses()):
                break
        is_wrapped = inner == [at + 1, close - 1]
        if is_wrapped or not self._are_paired(at, inner):
            raise self._not_one_string(at, first)
        self.ledger.note(inner[0], "inner_quotes")
        return close

    def opening_before(self, at: int) -> int:
        """Return the opening of the string before the closers before `at`, if it may continue.

        -1 unless a quote of the same kind follows the closers.
        """
        quote, close = self.text[at : at + 1], at
        while close and self.text[close - 1] in "]}":
            close -= 1
        if quote not in QUOTES or close == at or self.text[close - 1] != quote:
            return -1
        return self.text.rfind(quote, 0, close - 1)

    def inside_parentheses(self) -> bool:
        """Whether a tuple is open, so that `)` may end one of its strings."""
        return ")" in self.opened

    def _not_one_string(self, at: int, close: int) -> ParseFault:
        """Return the fault of a string without a single reading.

        A quote after a word and before a space closed the string, so the next token is
        unreadable. Any other inner quote makes the string itself ambiguous.
        """
        next_at, char = self.glance(close + 1)
        if char == ")":
            return unreadable(next_at, "a comma or a closing bracket behind this string")
        is_half = self.text.count(self.text[close], close + 1, next_at) % 2 > 0
        is_inner = next_at == close + 1 or self.text[close - 1].isspace()
        if is_half or is_inner or char == ":":
            return ambiguous(at)
        return unreadable(next_at, "a comma or a closing bracket behind this string")

    def _plain_next(self, at: int) -> str:
        """Return the next character after spaces; comments are not skipped."""
        spaces = SPACE.match(self.text, at)
        char = self.text[spaces.end() : spaces.end() + 1] if spaces is not None else ""
        if char == "`" and spaces is not None and self.text.startswith("```", spaces.end()):
            return ""
        return FULL_WIDTH.get(char, char)

    def _closes(self, close: int, role: Role) -> bool:
        """Whether a valid token follows the first possible closing quote."""
        at, char = self.glance(close + 1)
        if self.text.count(self.text[close], close + 1, at) % 2:
            # An unpaired quote in a comment: the string may continue there.
            return False
        if char in role.value:
            return char != ")" or self.inside_parentheses()
        if char == "+":
            return True
        is_apart = at > close + 1
        if role is Role.MEMBER and char != ":" and self.begins_key(at):
            is_whole = _SWALLOWED.search(self.text, max(0, close - 40), close) is None
            return is_whole and (is_apart or char in QUOTES)
        if char in QUOTES:
            return is_apart and self._stands_alone(at)
        return role is Role.ELEMENT and is_apart and self._begins_value(at, char)

    def _stands_alone(self, at: int) -> bool:
        """Whether there is a whole string at `at`, followed by punctuation or another string."""
        close = self.next_quote(at + 1, self.text[at])
        if close < 0:
            return False
        char = self.glance(close + 1)[1]
        return char in Role.MEMBER.value or char == "+" or char in QUOTES

    def _begins_value(self, at: int, char: str) -> bool:
        """Whether there is an object, array, number or literal at `at`."""
        if char in ("{", "["):
            return True
        token = BARE.match(self.text, at)
        scalar = read_scalar(token[0]) if token is not None else None
        if token is None or scalar is None or scalar.is_word:
            return False
        return self.glance(token.end())[1] in (",", "]")

    def _are_paired(self, at: int, inner: list[int]) -> bool:
        """Whether inner quotes alternate, are apostrophes, or all mean inches."""
        text = self.text
        if text[at] in _APOSTROPHES or text[at] == "‘":
            inner = [i for i in inner if not (text[i - 1].isalnum() and text[i + 1].isalnum())]
            if len(inner) % 2:
                inner = [i for i in inner if not _PLURAL.match(text, i - 1)]
        inner = [i for i in inner if not _LOW_QUOTED.search(text, max(at + 1, i - 202), i)]
        if all(_INCHES.search(text, max(at, i - 12), i + 2) for i in inner):
            return True
        if len(inner) % 2:
            return False
        return all(self._opens_inside(at, i) for i in inner[::2]) and all(
            not text[i - 1].isspace() and text[i - 1] not in ",:{[" and not text[i + 1].isalnum()
            for i in inner[1::2]
        )

    def _opens_inside(self, at: int, inner: int) -> bool:
        """Whether an inner quote may begin a quotation; not if it is doubled."""
        before, behind = self.text[inner - 1], self.text[inner + 1]
        is_start = inner == at + 1 or not before.isalnum()
        is_doubled = behind == self.text[inner]
        return is_start and not (is_doubled or behind.isspace() or behind in "{}[],:")

    def _refuse_mixed(self, at: int, close: int) -> None:
        """Refuse a curly string closed by a straight quote while a curly one closes it later."""
        if self.text[close] not in "\"'":
            return
        marks = _SMART if self.text[at] in "“„" else _SMART_SINGLE
        later = marks.search(self.text, close + 1)
        if later is not None and later[0] in "”’":
            raise ambiguous(at)

    def _read_triple(self, at: int, quote: str, role: Role) -> tuple[str, int]:
        close = find_unescaped(_CLOSING_TRIPLE[quote], self.text, at + 3)
        if close < 0:
            raise cut_off(at, "the closing quotes of this string")
        if self.glance(close + 3)[1] not in role.value:
            raise ambiguous(at)
        self.ledger.note(at, "triple_quotes")
        return self._decode(self.text[at + 3 : close], at, at + 3), close + 3

    def _decode(self, raw: str, at: int, start: int) -> str:
        if "\\" not in raw and raw.isprintable():
            return raw
        decoding = _Decoding(raw)
        if not decoding.is_certain:
            raise ambiguous(at)
        for kind, offset in decoding.repairs.items():
            self.ledger.note(start + offset, kind)
        return decoding.text

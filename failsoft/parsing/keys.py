"""Keys of objects - quoted, unquoted or with one quote missing - and bare values."""

import re
from typing import Any

from failsoft.parsing.faults import ParseFault, RefusalCause, caused, cut_off, unreadable
from failsoft.parsing.scalars import (
    BARE,
    BARE_KEY,
    MAX_DIGITS,
    QUOTES,
    Scalar,
    begins_literal,
    read_scalar,
)
from failsoft.parsing.strings import Role, Strings

_EXPECTED_KEY = "a key in double quotes or `}`"
# `name": 1`; `"name: 1` and `"name': 1`.
_OPENING_LOST = re.compile(r"([\w$](?:[\w$ .-]{0,98}[\w$.-])?)[\"'”’](?=\s{0,40}[:=])")
_CLOSING_LOST = re.compile(r"([\w$](?:[\w$ .-]{0,98}[\w$.-])?)[\"'”’]?(?=\s{0,40}[:=])")
# A key over two lines with one of these has swallowed other tokens.
_MARKS = re.compile(r"[,:{}\[\]]")
# A key that swallowed another contains the end of one and the start of another: `"a': 1, 'b"`.
_KEY_END = re.compile(r"[\"'”’`]\s{0,40}[:=]")
_KEY_BEGIN = re.compile(r"[,{\[]\s{0,40}[\"'“‘`]")
_BEGINS_VALUE = frozenset("{[(-+.0123456789") | QUOTES
_NUMBER_PARTS = frozenset("0123456789.,+-_")
_PYTHON_NAMES = frozenset({"True", "False", "None"})


class Keys(Strings):
    """Reads keys up to the beginning of their values."""

    def read_key(self, at: int, char: str) -> tuple[str, int]:
        """Return the key that begins with `char`, and the offset where its value may begin."""
        if char in QUOTES:
            key, end, is_whole = self._read_quoted_key(at)
            return key, self._read_colon(end, may_miss=is_whole and not key.endswith(":"))
        unopened = _OPENING_LOST.match(self.text, at)
        if unopened is not None:
            self.ledger.note(at, "key_quote")
            return unopened[1], self._read_colon(unopened.end(), may_miss=False)
        return self._read_bare_key(at, char)

    def _read_bare_key(self, at: int, char: str) -> tuple[str, int]:
        word = BARE_KEY.match(self.text, at)
        if word is None or word[0] in _PYTHON_NAMES:
            raise (cut_off(at, _EXPECTED_KEY) if char == "" else unreadable(at, _EXPECTED_KEY))
        mark, following = self.glance(word.end())
        if following == "" and mark >= self.length:
            raise cut_off(self.length, "`:` after the key")
        if following not in (":", "="):
            raise self.not_readable(at, _EXPECTED_KEY)
        self.ledger.note(at, "unquoted_key")
        return word[0], self._read_colon(word.end(), may_miss=False)

    def not_readable(self, at: int, expected: str) -> ParseFault:
        """Return the fault of a token; digits after a comma are blamed on their whole number."""
        if not (self.text[at].isdigit() and self.text[at - 1] == ","):
            return unreadable(at, expected)
        start = at - 1
        while start and self.text[start - 1] in _NUMBER_PARTS:
            start -= 1
        if start == at - 1:
            return unreadable(at, expected)
        return caused(start, RefusalCause.NUMBER_SEPARATORS)

    def _read_quoted_key(self, at: int) -> tuple[str, int, bool]:
        """Return a quoted key, the offset after it, and whether it has both quotes."""
        close = self.next_quote(at + 1, self.text[at])
        char = self.glance(close + 1)[1] if close >= 0 else ""
        if close >= 0 and char in Role.KEY.value:
            raw = self.text[at + 1 : close]
            if _is_two(raw) or ("\n" in raw and _MARKS.search(raw)):
                raise caused(at, RefusalCause.UNESCAPED_QUOTE)
            return self.take_string(at, close), close + 1, True
        unclosed = _CLOSING_LOST.match(self.text, at + 1)
        if unclosed is not None and (close < 0 or unclosed.end() < close):
            self.ledger.note(at, "key_quote")
            return unclosed[1], unclosed.end(), False
        if close < 0:
            raise cut_off(at, "the closing quote of this key")
        if char and not self._may_follow_key(close + 1, char):
            # Quotes inside a key are never intended, even in pairs.
            self.find_close(at, close, Role.KEY)
            raise caused(close, RefusalCause.UNESCAPED_QUOTE)
        return self.take_string(at, close), close + 1, True

    def _may_follow_key(self, at: int, char: str) -> bool:
        """Whether `char` is punctuation, or begins a value whose colon may be missing."""
        if char in ",}]);" or char in _BEGINS_VALUE:
            return True
        return begins_literal(self.text, self.glance(at)[0])

    def _read_colon(self, end: int, *, may_miss: bool) -> int:
        at, char = self.peek(end)
        if char in (":", "="):
            return self._behind_mark(at, char)
        if char == "":
            raise cut_off(at, "`:` and a value after the key")
        begins = char in _BEGINS_VALUE or begins_literal(self.text, at)
        if not (may_miss and begins):
            raise unreadable(at, "`:` after the key")
        self.ledger.note(at, "missing_colon")
        return at

    def _behind_mark(self, at: int, char: str) -> int:
        following = self.text[at + 1 : at + 2]
        if char == ":" and following != "=":
            return at + 1
        self.ledger.note(at, "separator")
        if char == ":" or following == ">":
            return at + 2
        if following == "=":
            raise unreadable(at, "`:` after the key")
        return at + 1


def _is_two(key: str) -> bool:
    """Whether a key spans from the opening quote of one key to the closing quote of another."""
    end = _KEY_END.search(key)
    return end is not None and _KEY_BEGIN.search(key, end.end()) is not None


_EXPECTED_VALUE = "a value: an object, an array, a string, a number, true, false or null"
# `1 000`, `1'000`: one number or two, depending on the convention.
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[ '’\u00a0\u202f][0-9]{3})+(?![\w.])")
# Tokens that are no value, by what is wrong with them.
_FORMS = (
    (RefusalCause.NOT_FINITE, re.compile(r"(?i:[+-]?(?:nan|inf|infinity))")),
    (RefusalCause.LEADING_ZEROS, re.compile(r"[+-]?0[0-9]+(?:\.[0-9]*)?")),
    (
        RefusalCause.TOO_MANY_DIGITS,
        re.compile(rf"[+-]?[0-9.]{{{MAX_DIGITS},}}(?:[eE][+-]?[0-9]+)?"),
    ),
    (RefusalCause.NUMBER_TOO_LARGE, re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE]\+?[0-9]+)?")),
    (RefusalCause.LEFT_OUT, re.compile(r"(?:\.{2,}(?!\.)|…)+")),
    (RefusalCause.MISSING_QUOTES, re.compile(r"(?!(?i:undefined\Z))[^\W\d][\w.@/-]*")),
)
_BEHIND_WORD = frozenset({",", ";", "]", "}", ")", ""})


class Bare(Keys):
    def read_bare(self, at: int, char: str, role: Role) -> tuple[Any, int]:
        """Return the bare value at `at`, which begins with `char` ("" at the end of the text)."""
        if char == "":
            raise cut_off(at, _EXPECTED_VALUE)
        match = BARE.match(self.text, at)
        if match is None:
            raise unreadable(at, _EXPECTED_VALUE)
        end, scalar = match.end(), read_scalar(match[0])
        is_open = scalar is None or scalar.is_word or scalar.is_number
        if is_open and end >= self.length and match[0].strip(".…"):
            # A number or a word at the end of the text may be truncated.
            raise cut_off(self.length, "the rest of this value")
        if scalar is None or self.text[end : end + 1] == ":":
            raise self._not_a_value(at, match[0], scalar)
        if scalar.is_number:
            self._refuse_grouped(at, end, role)
        elif scalar.is_word and not self._stands_alone_as_word(end, role):
            raise caused(at, RefusalCause.MISSING_QUOTES)
        if scalar.kind is not None:
            self.ledger.note(at, scalar.kind)
        return scalar.value, end

    def is_set(self, at: int) -> bool:
        """Whether a brace is followed by a value and a comma, or by one value alone."""
        at, char = self.glance(at)
        if char in QUOTES:
            close = self.next_quote(at + 1, self.text[at])
            return close >= 0 and self.glance(close + 1)[1] in (",", "}")
        token = BARE.match(self.text, at)
        scalar = read_scalar(token[0]) if token is not None else None
        if token is None or scalar is None or scalar.is_word:
            return False
        return self.glance(token.end())[1] in (",", "}")

    def _not_a_value(self, at: int, token: str, scalar: Scalar | None) -> ParseFault:
        forms = _FORMS if scalar is None else _FORMS[-1:]
        cause = next((cause for cause, form in forms if form.fullmatch(token)), None)
        if cause is RefusalCause.LEADING_ZEROS and len(token) > MAX_DIGITS:
            cause = RefusalCause.TOO_MANY_DIGITS
        fault = self.not_readable(at, _EXPECTED_VALUE)
        return fault if cause is None or fault.cause is not None else caused(at, cause)

    def _refuse_grouped(self, at: int, end: int, role: Role) -> None:
        """Refuse thousands separators and decimal commas: `1,234` may be one number or two."""
        if _GROUPED.match(self.text, at):
            raise caused(at, RefusalCause.NUMBER_SEPARATORS)
        if role is Role.MEMBER and self.text[end : end + 1] == ",":
            following = self.text[end + 1 : end + 2]
            if following.isdigit() and not self.begins_key(end + 1):
                raise caused(at, RefusalCause.NUMBER_SEPARATORS)

    def _stands_alone_as_word(self, end: int, role: Role) -> bool:
        at, char = self.glance(end)
        if self.text.count('"', end, at) % 2:
            return False
        if char in _BEHIND_WORD:
            return True
        is_next_line = self.text.count("\n", end, at) > 0
        return role is Role.MEMBER and is_next_line and self.begins_key(at)

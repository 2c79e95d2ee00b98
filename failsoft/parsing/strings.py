"""Strings in any quotes, with inner quotes only where the closing quote is unambiguous."""

import re
from enum import Enum

from failsoft.parsing.escapes import Escapes
from failsoft.parsing.faults import (
    ParseFault,
    RefusalCause,
    RepairLedger,
    caused,
    cut_off,
    unreadable,
)
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

    def __init__(self, text: str, ledger: RepairLedger, escapes: Escapes) -> None:
        super().__init__(text, ledger)
        self._escapes = escapes

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
            raise unreadable(at + 1 + raw.index("${"), "a string without placeholders")
        return self._decode(raw, at, at + 1)

    def next_quote(self, at: int, quote: str) -> int:
        """Return the next unescaped quote that may close `quote`; -1 without one."""
        return find_unescaped(_CLOSING[CLOSERS[quote]], self.text, at)

    def begins_key(self, at: int) -> bool:
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

    def quote_before(self, at: int) -> int:
        """Return the closing quote of the string before the closers before `at`.

        -1 unless a quote of the same kind follows the closers: the string may continue there.
        """
        quote, close = self.text[at : at + 1], at
        while close and self.text[close - 1] in "]}":
            close -= 1
        if quote not in QUOTES or close == at or self.text[close - 1] != quote:
            return -1
        return close - 1 if self.text.rfind(quote, 0, close - 1) >= 0 else -1

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
            if _SWALLOWED.search(self.text, max(at + 1, close - 200), close):
                return caused(at, RefusalCause.UNCLOSED_STRING)
            return caused(close, RefusalCause.UNESCAPED_QUOTE)
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
        opens = [self._opens_inside(at, i) for i in inner]
        closes = [self._closes_inside(i) for i in inner]
        return (all(opens[::2]) and all(closes[1::2])) or _are_nested(opens, closes)

    def _opens_inside(self, at: int, inner: int) -> bool:
        """Whether an inner quote may begin a quotation; not if it is doubled."""
        before, behind = self.text[inner - 1], self.text[inner + 1]
        is_start = inner == at + 1 or not before.isalnum()
        is_doubled = behind == self.text[inner]
        return is_start and not (is_doubled or behind.isspace() or behind in "{}[],:")

    def _closes_inside(self, inner: int) -> bool:
        """Whether an inner quote may end a quotation."""
        before, behind = self.text[inner - 1], self.text[inner + 1]
        return not (before.isspace() or before in ",:{[" or behind.isalnum())

    def _refuse_mixed(self, at: int, close: int) -> None:
        """Refuse a curly string closed by a straight quote while a curly one closes it later."""
        if self.text[close] not in "\"'":
            return
        marks = _SMART if self.text[at] in "“„" else _SMART_SINGLE
        later = marks.search(self.text, close + 1)
        if later is not None and later[0] in "”’":
            raise caused(close, RefusalCause.UNESCAPED_QUOTE)

    def _read_triple(self, at: int, quote: str, role: Role) -> tuple[str, int]:
        close = find_unescaped(_CLOSING_TRIPLE[quote], self.text, at + 3)
        if close < 0:
            raise cut_off(at, "the closing quotes of this string")
        if self.glance(close + 3)[1] not in role.value:
            raise caused(close, RefusalCause.UNESCAPED_QUOTE)
        self.ledger.note(at, "triple_quotes")
        return self._decode(self.text[at + 3 : close], at, at + 3), close + 3

    def _decode(self, raw: str, at: int, start: int) -> str:
        if "\\" not in raw and raw.isprintable():
            return raw
        decoded = self._escapes.decode(raw, at, start)
        for kind, offset in decoded.repairs.items():
            self.ledger.note(start + offset, kind)
        return decoded.text


def _are_nested(opens: list[bool], closes: list[bool]) -> bool:
    """Whether inner quotes are balanced, each of them either an opening or a closing one."""
    depth = 0
    for is_opening, is_closing in zip(opens, closes, strict=True):
        depth += is_opening - is_closing
        if depth < 0 or is_opening == is_closing:
            return False
    return depth == 0

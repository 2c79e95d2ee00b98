"""The tokens after a value: a comma, a closer, or the only position where one is missing."""

import re
from typing import Any

from failsoft.events import ParseErrorType
from failsoft.parsing.faults import ParseFault, RefusalCause, caused, cut_off, unreadable
from failsoft.parsing.keys import Bare
from failsoft.parsing.scalars import QUOTES
from failsoft.parsing.tracing import MAX_DEPTH

_CLOSERS = re.compile(r"[\s\]}]{0,400}")
_NAME = re.compile(r"\w[\w./:@#-]*")


class Closers(Bare):
    """Tracks open brackets and inserts at most one missing closer."""

    _same_line_commas = 0

    def enter(self, at: int, closer: str) -> None:
        if len(self.opened) >= MAX_DEPTH:
            expected = f"at most {MAX_DEPTH} brackets inside each other"
            raise ParseFault(at, expected, ParseErrorType.NOT_JSON)
        self.opened.append(closer)

    def is_outermost(self) -> bool:
        return len(self.opened) == 1

    def belongs_to_array(self, char: str) -> bool:
        """Whether a bracket after a comma in an object must belong to the enclosing array."""
        return char in ("{", "[") and self._around() == "]"

    def belongs_to_object(self, at: int, char: str) -> bool:
        """Whether a key after a comma in an array must belong to the enclosing object."""
        if self.opened[-1] != "]" or self._around() != "}" or char in ("", "{", "["):
            return False
        return self.begins_key(at)

    def colon_at(self, at: int) -> int:
        """Return the offset of the colon of the key at `at`, which is invalid in an array."""
        quote = self.text[at]
        if quote in QUOTES:
            return self.glance(self.next_quote(at + 1, quote) + 1)[0]
        return at

    def insert(self, at: int, blame: int, last: object, *, is_only: bool = False) -> None:
        """Insert one closer at `at`, if no other position fits; faults are located at `blame`.

        `is_only`: `last` is the only element, so `[[1]` may have one opener too many instead.
        """
        if isinstance(last, list) and (is_only or (last and isinstance(last[0], list))):
            raise unreadable(blame, "`]` as often as `[`")
        if self.ledger.cause_offset is not None or _could_close_earlier(last, self.opened[-1]):
            raise unreadable(blame, f"`{self.opened[-1]}` where only one place fits")
        self.ledger.cause_offset = blame
        self.ledger.note(at, "missing_closer")

    def after_member(self, end: int, value: object) -> tuple[int, str]:
        """Return the offset after a member and its mark, and the mark: `,` or `}`."""
        at, char = self._after(end, "}")
        if char in (",", "}"):
            return at, char
        if char == "":
            self._insert_at_end(at, value)
            return at, "}"
        if char == "]" and self._around() == "]":
            self.insert(at, at, value)
            return at, "}"
        if char not in "]})" and self.begins_key(at):
            self.ledger.note(at, "missing_comma")
            return at, ","
        raise self._after_string(at) or unreadable(at, "`,` or `}`")

    def after_element(
        self, end: int, value: object, closer: str, commas: list[int]
    ) -> tuple[int, str]:
        """Return the offset after an element and its mark, and the mark: `,` or `]`."""
        at, char = self._after(end, closer)
        if char in (",", closer):
            return at, "," if char == "," else "]"
        if char == "":
            raise cut_off(at, f"`,` or `{closer}`")
        if self._is_surplus(at, char):
            return self.after_element(at + 1, value, closer, commas)
        if char == "}" and closer == "]" and self._around() == "}":
            self.insert(at, at, value, is_only=not commas)
            return at, "]"
        if closer == "}" and char == ":" and commas:
            raise unreadable(commas[0], "`:` after the key")
        doubt = self._after_string(at)
        if doubt is not None:
            raise doubt
        if closer == "]" and self._may_miss_comma(end, at, char, value):
            self.ledger.note(at, "missing_comma")
            return at, ","
        raise unreadable(at, f"`,` or `{closer}`")

    def _after_string(self, at: int) -> ParseFault | None:
        """Return the fault of a string that may continue behind the closers before `at`."""
        quote = self.quote_before(at)
        return None if quote < 0 else caused(quote, RefusalCause.UNESCAPED_QUOTE)

    def _after(self, end: int, closer: str) -> tuple[int, str]:
        """Skip a comma, a semicolon or the matching closer."""
        at, char = self.peek(end)
        if char == ";":
            self.ledger.note(at, "separator")
            return at + 1, ","
        return (at + 1, char) if char in (",", closer) else (at, char)

    def _is_surplus(self, at: int, char: str) -> bool:
        """Whether a brace is surplus: only the closers of all open brackets follow it.

        A surplus bracket is refused, as it may have lost its opener: `1]` may mean `[1]`.
        """
        if char != "}":
            return False
        closers = _CLOSERS.match(self.text, at + 1)
        if closers is None or self.glance(closers.end())[1] != "":
            return False
        if [mark for mark in closers[0] if mark in "]}"] != self.opened[::-1]:
            return False
        self.ledger.note(at, "surplus_closer")
        return True

    def _around(self) -> str:
        return self.opened[-2] if len(self.opened) > 1 else ""

    def _insert_at_end(self, at: int, last: object) -> None:
        """Insert a brace that is missing at the end of the text.

        More than one only if nothing but braces is open and the text ends among them.
        """
        ends_in_brace = self.text[max(0, at - 400) : at].rstrip().endswith("}")
        is_among_braces = ends_in_brace and set(self.opened) == {"}"}
        if not (self.is_outermost() or is_among_braces):
            raise cut_off(at, "`,` or `}`")
        if (
            self.ledger.cause_offset not in (None, at)
            or self.ended_in_comment
            or _could_close_earlier(last, "}")
        ):
            raise cut_off(at, "`}` where only one place fits")
        self.ledger.cause_offset = at
        self.ledger.note(at, "missing_closer")

    def _may_miss_comma(self, end: int, at: int, char: str, value: Any) -> bool:  # noqa: ANN401 - any JSON
        """Whether a value may follow without a comma.

        Adjacent strings may be parts of one, as in Python, unless both are names without spaces,
        or stand on lines of their own without a space to join them.
        """
        if char in ("{", "["):
            return True
        if char in QUOTES:
            if isinstance(value, str):
                return self._are_apart(value, end, at)
        elif not (char.isalnum() or char in "+-."):
            return False
        if isinstance(value, dict | list) or "\n" in self.text[end:at]:
            return True
        self._same_line_commas += 1
        return self._same_line_commas == 1

    def _are_apart(self, value: str, end: int, at: int) -> bool:
        """Whether a string that ends at `end` and the next one are two."""
        close = self.next_quote(at + 1, self.text[at])
        strings = (value, self.text[at + 1 : close])
        if close < 0 or all(_NAME.fullmatch(string) for string in strings):
            return close >= 0
        return "\n" in self.text[end:at] and all(string == string.strip() for string in strings)


def _could_close_earlier(last: object, closer: str) -> bool:
    """Whether a missing closer also fits inside the last value, yielding another tree.

    The closer of that value would then close the enclosing bracket, which must match it.
    """
    if not isinstance(last, dict if closer == "}" else list):
        return False
    items = list(last.values()) if isinstance(last, dict) else last
    return len(items) > 1 or any(_could_close_earlier(item, closer) for item in items)

"""Values without quotes where they stand in the text."""
# ruff: noqa: RUF001 - look-alike characters are what this module is about

import re
from typing import Any

from diagnostics.core.recovery.faults import cut_off, unreadable
from diagnostics.core.recovery.keys import Keys
from diagnostics.core.recovery.lexing import BARE, QUOTES
from diagnostics.core.recovery.scalars import Scalar, read_scalar
from diagnostics.core.recovery.strings import Role

_EXPECTED_VALUE = "a value: an object, an array, a string, a number, true, false or null"
# `1 000`, `1'000`: one number to some, two to others.
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[ '’\u00a0\u202f][0-9]{3})+(?![\w.])")
_BEHIND_WORD = frozenset({",", ";", "]", "}", ")", ""})


class Bare(Keys):
    """Reads numbers, literals and single words."""

    def read_bare(self, at: int, char: str, role: Role) -> tuple[Any, int]:
        """Read the bare value at `at`, which begins with `char` ("" at the end of the text)."""
        if char == "":
            raise cut_off(at, _EXPECTED_VALUE)
        found = BARE.match(self.text, at)
        if found is None:
            raise unreadable(at, _EXPECTED_VALUE)
        end, scalar = found.end(), read_scalar(found[0])
        if found[0].strip(".…"):
            self._refuse_cut(end, scalar)
        if scalar is None or self.text[end : end + 1] == ":":
            raise self.not_readable(at, _EXPECTED_VALUE)
        if scalar.is_number:
            self._refuse_grouped(at, end, role)
        elif scalar.is_word and not self._stands_alone_as_word(end, role):
            raise unreadable(at, "quotes around this text")
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

    def _refuse_cut(self, end: int, scalar: Scalar | None) -> None:
        """Refuse a number or a word at the very end: more of it may have been to come."""
        if end >= self.length and (scalar is None or scalar.is_word or scalar.is_number):
            raise cut_off(self.length, "the rest of this value")

    def _refuse_grouped(self, at: int, end: int, role: Role) -> None:
        """Refuse thousands separators and decimal commas: `1,234` may be one number or two."""
        if _GROUPED.match(self.text, at):
            raise unreadable(at, "a number without separators")
        if role is Role.MEMBER and self.text[end : end + 1] == ",":
            following = self.text[end + 1 : end + 2]
            if following.isdigit() and not self.begins_key(end + 1):
                raise unreadable(at, "a number without separators")

    def _stands_alone_as_word(self, end: int, role: Role) -> bool:
        at, char = self.glance(end)
        if self.text.count('"', end, at) % 2:
            return False
        if char in _BEHIND_WORD:
            return True
        is_next_line = self.text.count("\n", end, at) > 0
        return role is Role.MEMBER and is_next_line and self.begins_key(at)

"""The grammar: objects and arrays, with the repairs that leave exactly one reading."""

import re
from typing import Any

from failsoft.events import ParseErrorType
from failsoft.parsing.closers import Closers
from failsoft.parsing.escapes import Escapes
from failsoft.parsing.faults import ParseFault, RefusalCause, RepairLedger, caused, unreadable
from failsoft.parsing.scalars import (
    JSON_LITERALS,
    LITERALS,
    LOOSE_ELEMENT,
    LOOSE_KEY,
    LOOSE_KINDS,
    LOOSE_MEMBER,
    MATCHING,
    PLAIN_ELEMENT,
    PLAIN_KEY,
    PLAIN_MEMBER,
    QUOTES,
)
from failsoft.parsing.strings import Role
from failsoft.parsing.tracing import Trace, same

Places = dict[Any, tuple[int, int]]


class Grammar(Closers):
    """Reads one object or array at a known offset."""

    def __init__(
        self,
        text: str,
        ledger: RepairLedger,
        trace: Trace | None = None,
        *,
        as_written: bool = False,
    ) -> None:
        """Read `text`; offsets of keys and values go to `trace`, if given.

        With `as_written`, a text that is valid JSON is read to the letter.
        """
        super().__init__(text, ledger, Escapes(text, as_written=as_written))
        self._trace = trace

    def read_root(self, at: int, char: str) -> tuple[Any, int]:
        """Return the value that opens with `char` at `at`, and the offset after it."""
        try:
            value, end = self._read_container(at, char)
        except ParseFault as fault:
            raise self.ledger.moved_to_cause(fault) from None
        # In `"press "}" to close"`, the closer may be inside the last string.
        quote = self.quote_before(end)
        if quote > at and self.text[at - 1 : at] != self.text[end : end + 1]:
            raise caused(quote, RefusalCause.UNESCAPED_QUOTE)
        if self._trace is not None:
            self._trace.root = value
        return value, end

    def _read_container(self, at: int, char: str) -> tuple[Any, int]:
        if char != "{":
            return self._read_sequence(at, char)
        if PLAIN_KEY.match(self.text, at + 1) or not self.is_set(at + 1):
            return self._read_object(at)
        return self._read_sequence(at, "set")

    def _read_object(self, at: int) -> tuple[dict[str, Any], int]:
        self.enter(at, "}")
        members: dict[str, Any] = {}
        places: Places = {}
        pos, comma, value, mark = at + 1, -1, None, ","
        while mark == ",":
            key, key_at, pos = self._next_key(pos, comma, value)
            if key is None:
                break
            value_at = pos
            value, pos, mark = self._next_member(pos)
            if key in members:
                if not same(members[key], value):
                    expected = "every key once; this one was already given another value"
                    raise ParseFault(key_at, expected, ParseErrorType.DUPLICATE_KEY)
                self.ledger.note(key_at, "duplicate_key")
            members[key] = value
            places[key] = key_at, value_at
            comma = self._comma_before(pos)
        self._leave(at, members, places)
        return members, pos

    def _next_key(self, pos: int, comma: int, value: object) -> tuple[str | None, int, int]:
        """Return the next key, its offset, and the offset where its value may begin.

        At the end of the object the key is None, and the last offset is the end.
        """
        plain = PLAIN_KEY.match(self.text, pos)
        if plain is not None:
            return plain[1], plain.start(1) - 1, plain.end()
        loose = LOOSE_KEY.match(self.text, pos)
        if loose is not None and loose[4] not in LITERALS:
            return self._loose_key(loose)
        at, char = self.peek(pos)
        if char == "}":
            return None, at, self._close_after_comma(at, comma)
        if comma >= 0 and self.belongs_to_array(char):
            self.insert(comma, at, value)
            return None, at, comma
        key, end = self.read_key(at, char)
        return key, at, end

    def _next_member(self, pos: int) -> tuple[Any, int, str]:
        """Return the value of a member, the offset after its mark, and the mark."""
        plain = PLAIN_MEMBER.match(self.text, pos)
        if plain is not None:
            return _plain_value(plain), plain.end(), plain[4]
        loose = LOOSE_MEMBER.match(self.text, pos)
        if loose is not None:
            return self._loose_value(loose), loose.end(), loose[5]
        value, pos = self.read_value(pos, Role.MEMBER)
        pos, mark = self.after_member(pos, value)
        return value, pos, mark

    def _read_sequence(self, at: int, opener: str) -> tuple[list[Any], int]:
        closer = "}" if opener == "set" else MATCHING[opener]
        self.enter(at, closer)
        items: list[Any] = []
        places: Places = {}
        commas: list[int] = []
        pos, comma, mark = at + 1, -1, ","
        while mark == ",":
            if closer != "]" or not PLAIN_ELEMENT.match(self.text, pos):
                end = self._end_of_sequence(pos, closer, comma, items)
                if end is not None:
                    pos = end
                    break
            value_at = pos
            value, pos, mark = self._next_element(pos, closer, commas)
            places[len(items)] = value_at, value_at
            items.append(value)
            comma = self._comma_before(pos) if mark == "," else -1
            if comma >= 0 and not commas:
                commas.append(comma)
        if len(items) > 2 and {",", ";"} <= {self.text[place - 1] for place, _ in places.values()}:
            # `[1,5; 2,5]`: decimal commas or four numbers.
            raise caused(commas[0], RefusalCause.NUMBER_SEPARATORS)
        self._note_sequence(at, opener, items, commas)
        self._leave(at, items, places)
        return items, pos

    def _end_of_sequence(self, pos: int, closer: str, comma: int, items: list[Any]) -> int | None:
        """Return the end of a sequence without a further element at `pos`, else None."""
        at, char = self.peek(pos)
        if char == closer:
            return self._close_after_comma(at, comma)
        if comma >= 0 and self.belongs_to_object(at, char):
            self.insert(comma, self.colon_at(at), items[-1], is_only=len(items) == 1)
            return comma
        return None

    def _next_element(self, pos: int, closer: str, commas: list[int]) -> tuple[Any, int, str]:
        if closer == "]":
            plain = PLAIN_ELEMENT.match(self.text, pos)
            if plain is not None:
                return _plain_value(plain), plain.end(), plain[4]
            loose = LOOSE_ELEMENT.match(self.text, pos)
            if loose is not None:
                return self._loose_value(loose), loose.end(), loose[5]
        value, pos = self.read_value(pos, Role.ELEMENT)
        pos, mark = self.after_element(pos, value, closer, commas)
        return value, pos, mark

    def _comma_before(self, pos: int) -> int:
        return pos - 1 if self.text[pos - 1] in ",;，、；" else -1

    def read_value(self, at: int, role: Role) -> tuple[Any, int]:
        at, char = self.peek(at)
        if char in MATCHING:
            return self._read_container(at, char)
        if char in QUOTES:
            return self.read_text(at, role)
        return self.read_bare(at, char, role)

    def _loose_key(self, match: re.Match[str]) -> tuple[str, int, int]:
        group = match.lastindex or 0
        at = match.start(group)
        if group == 4:
            self.ledger.note(at, "unquoted_key")
            return match[4], at, match.end()
        self.ledger.note(at - 1, LOOSE_KINDS[group])
        return match[group], at - 1, match.end()

    def _loose_value(self, match: re.Match[str]) -> Any:  # noqa: ANN401 - any scalar
        word = match[4]
        if word is not None:
            self.ledger.note(match.start(4), "python_literal")
            return LITERALS[word]
        group = 1 if match[1] is not None else 2 if match[2] is not None else 3
        self.ledger.note(match.start(group) - 1, LOOSE_KINDS[group])
        return match[group]

    def _close_after_comma(self, at: int, comma: int) -> int:
        if comma >= 0:
            self.ledger.note(comma, "trailing_comma")
        return at + 1

    def _note_sequence(self, at: int, opener: str, items: list[Any], commas: list[int]) -> None:
        if opener == "(" and len(items) == 1 and not commas:
            raise unreadable(at, "a value; one in parentheses may be a tuple or not")
        if opener == "set" and len(items) == 1 and not commas and self.is_outermost():
            raise unreadable(at, "an object with keys and values")
        if opener == "set" and len({_class_of(item) for item in items}) > 1:
            raise unreadable(commas[0], "`:` after the key")
        if opener != "[":
            self.ledger.note(at, "tuple" if opener == "(" else "set")

    def _leave(self, at: int, value: object, places: Places) -> None:
        self.opened.pop()
        if self._trace is not None:
            # Spaces and comments may precede a value after its colon.
            offsets = {
                key: (key_at, self.glance(value_at)[0])
                for key, (key_at, value_at) in places.items()
            }
            self._trace.remember(value, at, offsets)


def _class_of(value: object) -> type:
    return float if type(value) is int else type(value)


def _plain_value(match: re.Match[str]) -> str | int | float | bool | None:
    text, number = match.group(1, 2)
    if text is not None:
        return text
    if number is not None:
        return float(number) if "." in number else int(number)
    return JSON_LITERALS[match[3]]

"""The items of a JSON array that does not parse as a whole."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

_SPACE = re.compile(r"[ \t\r\n]*")
# Only where a value ends matters: numbers may be of any size.
_VALUE = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


class ArrayItem(NamedTuple):
    """A value of an array, and where it begins in the text of the array (1-based).

    `lead` goes before the rest of a broken array, so that a parser finds its fault.
    """

    text: str
    line: int
    column: int
    lead: str = ""


def split_array(text: str) -> Iterator[ArrayItem]:
    """Yield the items of an array, and as the last one what cannot be split, if any."""
    separator, lead = "[", "[0"
    place, line, line_begin = 0, 1, 0
    while text.startswith(separator, after := _skip_space(text, place)):
        begin = _skip_space(text, after + 1)
        line, line_begin = _advance(text, place, begin, line, line_begin)
        place, lead = begin, "[0,"
        try:
            _, place = _VALUE.raw_decode(text, begin)
        except (ValueError, RecursionError):
            break
        yield ArrayItem(text[begin:place], line, begin - line_begin + 1)
        line, line_begin = _advance(text, begin, place, line, line_begin)
        separator, lead = ",", "[0"
    if text[place:].strip(" \t\r\n") != "]" or lead == "[0,":
        yield ArrayItem(text[place:], line, place - line_begin + 1, lead)


def _skip_space(text: str, place: int) -> int:
    return _SPACE.match(text, place).end()  # type: ignore[union-attr] # matches nothing, too


def _advance(text: str, begin: int, end: int, line: int, line_begin: int) -> tuple[int, int]:
    """Return the line at `end` and where it begins, from those at `begin`."""
    newline = text.rfind("\n", begin, end)
    return line + text.count("\n", begin, end), newline + 1 if newline >= 0 else line_begin

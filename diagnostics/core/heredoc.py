"""Text of strangers as the input of a shell command that somebody will paste."""

import re
from typing import NamedTuple

# A terminal takes a carriage return for the end of a line and obeys escapes.
ENDS_OF_LINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
WORD = "END"


class Heredoc(NamedTuple):
    """What stands between `<<'end'` and `end`."""

    text: str
    end: str


def as_heredoc(text: str) -> Heredoc:
    """Give the text without control characters, and an end that is none of its lines."""
    text = CONTROLS.sub("\ufffd", ENDS_OF_LINES.sub("\n", text))
    lines = set(text.split("\n"))
    number, end = 0, WORD
    while end in lines:
        number += 1
        end = f"{WORD}_{number}"
    return Heredoc(text, end)

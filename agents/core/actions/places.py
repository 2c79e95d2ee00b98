"""Where something stands in the arguments of a tool call."""

import re
from collections.abc import Sequence

from agents.core.positions import pointer_of
from diagnostics.core.cleaning import clean_text

Place = tuple[str | int, ...]

MAX_KEY_CHARACTERS = 100
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def dotted(place: Sequence[str | int]) -> str:
    """Write a place as people do, `entries[0].category` (S4-4)."""
    written = ""
    for part in place:
        if isinstance(part, int) or not _PLAIN_KEY.fullmatch(part):
            written += f"[{part if isinstance(part, int) else repr(_cut(part))}]"
        else:
            written += f".{_cut(part)}" if written else _cut(part)
    return written


def pointer(call: int, place: Sequence[str | int]) -> str:
    """Write a place of the numbered call as a JSON pointer into the list of tool calls."""
    return pointer_of((call, *(_cut(part) if isinstance(part, str) else part for part in place)))


def _cut(key: str) -> str:
    # Keys are the model's: what no column can keep does not leave here.
    return clean_text(key[:MAX_KEY_CHARACTERS])

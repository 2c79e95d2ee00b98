"""Lines and columns, 1-based, in code points."""

from bisect import bisect_right
from functools import cached_property

CONTEXT_WIDTH = 60


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Place one offset; the end of the text is one past its last character."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def excerpt(text: str, offset: int) -> str:
    """Show the offending line, at most 120 characters of it, with a caret below."""
    first = text.rfind("\n", 0, offset) + 1
    last = text.find("\n", offset)
    last = len(text) if last < 0 else last
    start, end = max(first, offset - CONTEXT_WIDTH), min(last, offset + CONTEXT_WIDTH)
    shown = "".join(char if char.isprintable() else " " for char in text[start:end])
    return f"{shown}\n{' ' * (offset - start)}^"


class Lines:
    """Places many offsets of one text in logarithmic time each."""

    def __init__(self, text: str) -> None:
        """Remember the text; its line starts are found at the first question."""
        self._text = text

    @cached_property
    def _starts(self) -> list[int]:
        starts, at = [0], self._text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self._text.find("\n", at + 1)
        return starts

    def place(self, offset: int) -> tuple[int, int]:
        """Place one offset as line and column."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

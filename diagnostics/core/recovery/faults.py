"""Why a text cannot be read: what is wrong, where, and what was expected instead."""

from diagnostics.core.events import ParseErrorType

AMBIGUOUS_STRING = "one string with one reading; its inner quotes or backslashes are not escaped"


class Fault(Exception):  # noqa: N818 - a finding about the text, not an error of the program
    """A text stops being readable at `offset` (code points from 0)."""

    def __init__(self, offset: int, expected: str, error_type: ParseErrorType) -> None:
        """Say what was `expected` at `offset`."""
        super().__init__(expected)
        self.offset = offset
        self.expected = expected
        self.error_type = error_type

    def moved_to(self, offset: int) -> "Fault":
        """Tell the same finding at another place of the text."""
        return Fault(offset, self.expected, self.error_type)


def unreadable(offset: int, expected: str) -> Fault:
    """Find a token that cannot be read, or that has more than one reading."""
    return Fault(offset, expected, ParseErrorType.NOT_JSON)


def cut_off(offset: int, expected: str) -> Fault:
    """Find that the text ends before the value does."""
    return Fault(offset, expected, ParseErrorType.TRUNCATED)


def ambiguous(offset: int) -> Fault:
    """Find a string that has no single reading; `offset` is its opening."""
    return Fault(offset, AMBIGUOUS_STRING, ParseErrorType.NOT_JSON)

"""Numbers as they stand in addresses and forms."""

import pytest

from diagnostics.figures import read_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("007", 7),
        ("0", 0),
        ("", None),
        (None, None),
        ("-1", None),
        (" 1", None),
        ("1e3", None),
        # A digit to Python, but no decimal one.
        ("\N{SUPERSCRIPT TWO}", None),
        ("\N{ARABIC-INDIC DIGIT ONE}", None),
        # int() itself raises beyond 4,300 digits.
        ("9" * 5_000, None),
    ],
)
def test_a_number_is_ascii_digits_that_a_column_can_hold(
    text: str | None, number: int | None
) -> None:
    assert read_number(text) == number

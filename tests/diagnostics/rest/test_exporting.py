"""Cells of a CSV file that a spreadsheet would take for formulas."""

import time

import pytest

from diagnostics.rest.exporting import cell_of


@pytest.mark.parametrize("start", ["", "\n", "\r", "\t", " ", "\r\n \t", "\u00a0", "\ufeff"])
@pytest.mark.parametrize("sign", "=+-@\uff1d\uff0b\uff0d\uff20")
def test_a_formula_is_quoted_whatever_blanks_are_before_it(start: str, sign: str) -> None:
    assert cell_of(f"{start}{sign}1+1").replace("'", "") == f"{start}{sign}1+1"
    assert cell_of(f"{start}{sign}1+1").startswith("'")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        pytest.param("fine;=1+1", "fine;'=1+1", id="separator of other countries"),
        pytest.param("fine\t@SUM(1)", "fine\t'@SUM(1)", id="tab"),
        pytest.param("fine\n =1", "fine\n '=1", id="next line"),
        pytest.param("\n=1", "'\n'=1", id="empty line before"),
        pytest.param("fine;\n=1", "fine;\n'=1", id="separator and line break"),
    ],
)
def test_a_cell_that_a_separator_begins_is_quoted_too(text: str, cell: str) -> None:
    assert cell_of(text) == cell


@pytest.mark.parametrize("text", ["a = b", "gpt-4o", "x;y", "two\nlines", "a@example.org", "  ok"])
def test_other_texts_stay(text: str) -> None:
    assert cell_of(text) == text


def test_numbers_stay_numbers() -> None:
    assert [cell_of(value) for value in (-5, -0.5, True, None)] == ["-5", "-0.5", "true", ""]


def test_a_cell_of_many_empty_lines_takes_no_time() -> None:
    started = time.process_time()
    cell_of("\n \t" * 300_000 + "x")
    assert time.process_time() - started < 5

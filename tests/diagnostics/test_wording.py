"""Figures as people read them."""

from datetime import timedelta

import pytest

from diagnostics import figures


def plain(text: str) -> str:
    return text.replace(figures.THIN, " ")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),  # noqa: RUF001 - the dash that is written
        (0, "0 s"),
        (0.84, "840 ms"),
        (4.24, "4.2 s"),
        (60, "1 min"),
        (185, "3 min 5 s"),
        (7_800, "2 h 10 min"),
        (273_600, "3 d 4 h"),
        (timedelta(minutes=3), "3 min"),
    ],
)
def test_durations_have_the_two_units_that_matter(
    seconds: float | timedelta | None, words: str
) -> None:
    assert plain(figures.duration(seconds)) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"),  # noqa: RUF001 - the dash that is written
        (0, "0"),
        (999, "999"),
        (1_423, "1.4 k"),
        (38_200, "38 k"),
        (2_000_000, "2.0 M"),
        (3_100_000_000, "3.1 G"),
    ],
)
def test_large_counts_are_short(value: int | None, words: str) -> None:
    assert plain(figures.short_count(value)) == words


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.269, "+26.9 pt"), (-0.002, "−0.2 pt"), (0.0, "±0.0 pt"), (-0.00001, "±0.0 pt")],  # noqa: RUF001 - a minus
)
def test_differences_are_always_signed(share: float, words: str) -> None:
    assert plain(figures.points(share)) == words


def test_percentages_have_a_unit_and_a_dash_without_a_value() -> None:
    assert plain(figures.percent(0.314)) == "31.4 %"
    assert figures.percent(None) == figures.points(None) == figures.count(None)


def test_long_names_are_cut_in_their_middle() -> None:
    assert figures.shorten("short", 5) == "short"
    assert figures.shorten("anthropic-claude", 7) == "ant…ude"
    assert [len(figures.shorten("x" * 99, most)) for most in (5, 8, 40)] == [5, 8, 40]


def test_names_cannot_turn_the_sentence_around() -> None:
    assert figures.shorten("\u202eabc\u202c\u2066", 9) == "abc"


def test_counts_take_their_noun() -> None:
    assert figures.plural(1, "run") == "1 run"
    assert figures.plural(1_200, "run") == "1,200 runs"
    assert figures.plural(2, "series", "series") == "2 series"

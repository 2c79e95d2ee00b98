"""Counts over time, and a bar divided among names."""

from diagnostics.web.charts.bars import columns, shares


def test_columns_are_hot_from_where_more_failed_than_usual() -> None:
    rising = columns([1, 0, 1, 1, 9, 8], 24, 14)
    assert rising.hot.startswith("M22")
    assert rising.bars.count("v") == 3


def test_noise_and_a_handful_of_failures_are_not_hot() -> None:
    assert columns([1, 0, 0, 4], 24, 1).hot == ""
    assert columns([0, 0, 0, 4], 24, 4).hot == ""
    assert columns([10, 10, 10, 14], 24, 4).hot == ""
    assert columns([4, 0, 0, 1], 24, -4).hot == ""


def test_columns_are_told_in_words() -> None:
    assert "no failures in 24 h" in columns([0, 0], 24).text
    told = columns([1, 0, 0, 4], 24).text
    assert told.startswith("4 failures in the second half of 24 h, 1 in the first")
    assert "most at once 4, about 3 h before the end" in told
    assert columns([], 24).width == 1


def test_a_bar_is_divided_largest_first_and_the_rest_is_one() -> None:
    drawn = shares({"a": 10, "b": 60, "c": 10, "d": 10, "e": 10})
    assert [part.name for part in drawn.parts] == ["b", "a", "c", "2 more"]
    assert [part.share for part in drawn.parts] == [0.6, 0.1, 0.1, 0.2]
    assert drawn.parts[1].x == 79.2
    assert drawn.text.startswith("b 60")
    assert sum(part.width for part in drawn.parts) <= drawn.width


def test_four_names_need_no_rest_and_nothing_is_nothing() -> None:
    four = shares(dict.fromkeys("abcd", 1))
    assert [part.name for part in four.parts] == list("abcd")
    assert shares({}).parts == ()
    assert shares({}).text == "none"

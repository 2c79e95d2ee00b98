"""The test of a corpus tells every case that failed."""

import pytest

from tests.corpora import each_of


def test_all_cases_are_tried_and_the_failed_ones_are_listed() -> None:
    tried = []

    @each_of([(1, "a"), (2, "b"), (3, "c")])
    def test_odd(number: int, name: str) -> None:
        tried.append(name)
        assert number % 2 == 0, f"{number} is odd"

    with pytest.raises(AssertionError, match=r"2 of 3 cases(?s:.*)1 is odd(?s:.*)3 is odd"):
        test_odd()
    assert tried == ["a", "b", "c"]


def test_an_empty_corpus_is_a_failure() -> None:
    with pytest.raises(AssertionError):
        each_of([])(lambda case: None)()

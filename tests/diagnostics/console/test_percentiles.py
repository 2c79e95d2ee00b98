"""Percentiles, against the standard library's."""

from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.console.model_story import Percentiles, spread_of


@given(st.lists(st.integers(0, 100_000), min_size=2, max_size=300))
def test_they_agree_with_the_standard_library(values: list[int]) -> None:
    theirs = quantiles(values, n=100, method="inclusive")
    found = spread_of(values)
    assert found.count == len(values)
    assert (found.half, found.most, found.nearly_all) == pytest.approx(
        (theirs[49], theirs[89], theirs[94])
    )


def test_of_one_value_all_are_that_value_and_of_none_nothing() -> None:
    assert spread_of([7]) == Percentiles(1, 7, 7, 7)
    assert spread_of([]) == Percentiles(0)

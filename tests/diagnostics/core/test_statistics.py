"""The Wilson interval, against figures worked by hand and by scipy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from diagnostics.core.statistics import wilson_interval

# successes, trials, z, lower bound (the worked examples of the alert rules)
WORKED = [(4, 40, 2.326, 0.0337), (7, 40, 2.326, 0.0770), (40, 400, 2.326, 0.0703)]


@pytest.mark.parametrize(("successes", "trials", "z", "low"), WORKED)
def test_the_worked_lower_bounds_hold(
    successes: int, trials: int, z: float, low: float
) -> None:
    assert wilson_interval(successes, trials, z)[0] == pytest.approx(low, abs=5e-5)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_it_agrees_with_scipy(counts: tuple[int, int]) -> None:
    theirs = binomtest(*counts).proportion_ci(0.95, "wilson")
    assert wilson_interval(*counts) == pytest.approx(
        (theirs.low, theirs.high), abs=1e-6
    )


def test_without_a_trial_nothing_is_known() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 2), (3, 2)])
def test_impossible_counts_are_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="share"):
        wilson_interval(successes, trials)

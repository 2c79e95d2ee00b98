"""Intervals, against published figures, figures worked by hand, and scipy."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import CensoredData, binomtest, ecdf

from diagnostics.analysis.statistics import (
    AttemptTally,
    attempts_to_success,
    chance_within,
    is_enough,
    newcombe_interval,
    wilson_interval,
)

# successes, trials, z, lower bound (the worked examples of the alert rules)
WORKED = [(4, 40, 2.326, 0.0337), (7, 40, 2.326, 0.0770), (40, 400, 2.326, 0.0703)]

# Newcombe, Statistics in Medicine 17 (1998), table II, method 10: counts, low, high.
PUBLISHED = [
    ((56, 70, 48, 80), 0.0524, 0.3339),
    ((9, 10, 3, 10), 0.1705, 0.8090),
    ((6, 7, 2, 7), 0.0582, 0.8062),
    ((5, 56, 0, 29), -0.0381, 0.1926),
    ((0, 10, 0, 20), -0.1611, 0.2775),
    ((0, 10, 0, 10), -0.2775, 0.2775),
    ((10, 10, 0, 20), 0.6791, 1.0),
    ((10, 10, 0, 10), 0.6075, 1.0),
]
shares = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(("successes", "trials", "z", "low"), WORKED)
def test_the_worked_lower_bounds_hold(successes: int, trials: int, z: float, low: float) -> None:
    assert wilson_interval(successes, trials, z)[0] == pytest.approx(low, abs=5e-5)


@given(shares)
def test_it_agrees_with_scipy(counts: tuple[int, int]) -> None:
    theirs = binomtest(*counts).proportion_ci(0.95, "wilson")
    assert wilson_interval(*counts) == pytest.approx((theirs.low, theirs.high), abs=1e-6)


def test_without_a_trial_nothing_is_known() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert newcombe_interval(0, 0, 3, 9) == (-1.0, 1.0)
    assert newcombe_interval(3, 9, 0, 0) == (-1.0, 1.0)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 2), (3, 2)])
def test_impossible_counts_are_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="share"):
        wilson_interval(successes, trials)
    with pytest.raises(ValueError, match="share"):
        newcombe_interval(1, 2, successes, trials)


@pytest.mark.parametrize(("counts", "low", "high"), PUBLISHED)
def test_differences_agree_with_the_published_table(
    counts: tuple[int, int, int, int], low: float, high: float
) -> None:
    assert newcombe_interval(*counts) == pytest.approx((low, high), abs=5.1e-5)


@given(shares, shares)
def test_a_difference_lies_in_its_interval_and_turns_with_it(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    low, high = newcombe_interval(*one, *other)
    difference = one[0] / one[1] - other[0] / other[1]
    assert -1 - 1e-9 <= low <= difference + 1e-9
    assert difference - 1e-9 <= high <= 1 + 1e-9
    assert newcombe_interval(*other, *one) == pytest.approx((-high, -low))


def test_fewer_than_twenty_trials_are_not_enough() -> None:
    assert is_enough(20, 20)
    assert not is_enough(20, 19)


def test_a_ladder_that_always_goes_on_gives_plain_shares() -> None:
    steps = attempts_to_success([AttemptTally(100, 60), AttemptTally(40, 30), AttemptTally(10, 2)])

    within = [step.within.share for step in steps if step.within]
    assert within == pytest.approx([0.6, 0.9, 0.92])
    last = steps[2].within
    assert last is not None
    assert (last.low, last.high) == wilson_interval(92, 100)
    own = steps[1].own
    assert own is not None
    assert (own.low, own.high) == wilson_interval(30, 40)


def ladders(tallies: list[AttemptTally]) -> CensoredData:
    """Write counts as scipy has them: attempts until success, or until a ladder ended."""
    ended, stopped = [], []
    for number, tally in enumerate(tallies, start=1):
        ended += [number] * tally.good
        later = tallies[number].made if number < len(tallies) else 0
        stopped += [number] * (tally.made - tally.good - later)
    return CensoredData(uncensored=ended, right=stopped)


@pytest.mark.parametrize(
    "tallies",
    [
        [AttemptTally(100, 60), AttemptTally(30, 20), AttemptTally(4, 1)],
        [AttemptTally(500, 450), AttemptTally(40, 31), AttemptTally(5, 2), AttemptTally(1, 0)],
        [AttemptTally(80, 10), AttemptTally(60, 10)],
    ],
    ids=["three", "four", "two"],
)
def test_ladders_that_stopped_early_count_as_far_as_they_went(tallies: list[AttemptTally]) -> None:
    theirs: Any = ecdf(ladders(tallies)).sf
    bounds = theirs.confidence_interval(method="log-log")
    ours = attempts_to_success(tallies)[-1].within
    assert ours is not None
    attempts = len(tallies)
    assert ours.share == pytest.approx(1 - theirs.evaluate(attempts))
    assert ours.low == pytest.approx(1 - bounds.high.evaluate(attempts), abs=1e-6)
    assert ours.high == pytest.approx(1 - bounds.low.evaluate(attempts), abs=1e-6)


def test_an_attempt_nobody_made_is_unknown() -> None:
    steps = attempts_to_success([AttemptTally(10, 4), AttemptTally(0, 0), AttemptTally(3, 3)])
    assert (steps[1].own, steps[1].within) == (None, None)
    assert steps[2].own is not None
    assert steps[2].within is None


@pytest.mark.parametrize(
    ("tallies", "share"),
    [
        ([AttemptTally(9, 0), AttemptTally(4, 0)], 0.0),
        ([AttemptTally(9, 1), AttemptTally(4, 4)], 1.0),
    ],
    ids=["nothing", "everything"],
)
def test_all_or_nothing_still_has_an_interval(tallies: list[AttemptTally], share: float) -> None:
    chance = chance_within(tallies)
    assert chance.share == share
    assert 0 <= chance.low <= share <= chance.high <= 1
    assert chance.low < chance.high


@given(st.lists(shares.map(lambda pair: AttemptTally(pair[1], pair[0])), max_size=5))
def test_the_curve_never_falls(tallies: list[AttemptTally]) -> None:
    known = [s.within for s in attempts_to_success(tallies) if s.within]
    shares_known = [round(c.share, 9) for c in known]
    assert shares_known == sorted(shares_known)
    assert all(0 <= c.low <= c.share + 1e-9 <= c.high + 2e-9 for c in known)

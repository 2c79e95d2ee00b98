"""What retries would have rescued and cost, against figures worked by hand."""

from decimal import Decimal

import pytest

from diagnostics.analysis.statistics import AttemptTally, wilson_interval
from diagnostics.prices.retry_budgets import RetrySpend, next_attempt, what_if

# 100 ladders, 40 fail first; the second attempt rescues 30 of 40, the third 5 of 10.
TALLIES = [AttemptTally(100, 60), AttemptTally(40, 30), AttemptTally(10, 5)]
SPEND = RetrySpend(50, 40_000, 10_000, 100_000, Decimal("0.50"))


def test_a_budget_rescues_what_its_attempts_did() -> None:
    one, two, _ = what_if(TALLIES, SPEND)
    assert one.rescued == pytest.approx(30)
    assert two.rescued == pytest.approx(35)
    assert one.share is not None
    assert (one.share.low, one.share.high) == wilson_interval(30, 40)


def test_each_retry_is_paid_by_those_not_rescued_before() -> None:
    one, two, _ = what_if(TALLIES, SPEND)
    assert one.calls == pytest.approx(40)
    assert two.calls == pytest.approx(50)
    assert two.tokens == pytest.approx(50_000)
    assert two.seconds == pytest.approx(100)
    assert two.money_usd == Decimal("0.50")
    assert one.tokens == pytest.approx(40_000)


def test_a_rescue_has_its_price() -> None:
    one = what_if(TALLIES, SPEND)[0]
    assert one.tokens_each == pytest.approx(40_000 / 30)
    assert float(one.money_each_usd or 0) == pytest.approx(0.40 / 30)


def test_a_budget_that_nobody_had_is_unknown() -> None:
    three = what_if(TALLIES, SPEND)[2]
    assert (three.share, three.calls, three.tokens, three.money_usd) == (None,) * 4
    assert three.rescued is None
    assert three.tokens_each is None


def test_a_budget_that_few_had_says_so() -> None:
    one, two, _ = what_if(TALLIES, SPEND)
    assert not one.is_thin
    assert two.is_thin


def test_without_a_price_there_is_no_money() -> None:
    one = what_if(TALLIES, RetrySpend(50, 40_000, 10_000, 100_000))[0]
    assert (one.money_usd, one.money_each_usd) == (None, None)
    assert one.tokens == pytest.approx(40_000)


@pytest.mark.parametrize("tallies", [[], [AttemptTally(0, 0)], [AttemptTally(9, 9)]])
def test_where_nothing_failed_nothing_is_claimed(tallies: list[AttemptTally]) -> None:
    found = what_if(tallies, RetrySpend(0))
    assert [(one.failed_first, one.share) for one in found] == [(0, None)] * 3


def test_one_more_attempt_is_measured_by_those_who_made_it() -> None:
    third = next_attempt([*TALLIES[:2], AttemptTally(25, 5)], 2)
    assert third is not None
    assert (third.number, third.made, third.chance.share) == (3, 25, 0.2)
    assert (third.chance.low, third.chance.high) == wilson_interval(5, 25)


@pytest.mark.parametrize(
    ("spent", "why"), [(0, "nothing was spent"), (2, "ten went so far"), (3, "nobody went so far")]
)
def test_one_more_attempt_is_not_spoken_of_where_fewer_than_20_made_it(
    spent: int, why: str
) -> None:
    assert next_attempt(TALLIES, spent) is None, why


def test_attempts_from_the_fifth_on_are_one() -> None:
    tallies = [AttemptTally(500, 100), *[AttemptTally(400, 100)] * 3, AttemptTally(40, 10)]
    later = next_attempt(tallies, 7)
    assert later is not None
    assert (later.number, later.made) == (8, 40)

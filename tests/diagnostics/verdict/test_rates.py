"""How likely counts are, given how often the same calls failed before."""

from itertools import product
from math import comb, exp, log

import pytest

from diagnostics.analysis.detectors.noise import log_sum
from diagnostics.verdict.cells import CountCell, Dimensions, without_failure_only
from diagnostics.verdict.rates import KNOWN_MODEL, CellBaseline, Rate, RatioTable, noise_of_hours
from tests.corpora import each_of

PLACE = Dimensions("acme", "one", "v1", "Plan", "1", "bot", "r1", "plan", "prod")
KIND = ("not_json",)


def cell(place: Dimensions, calls: int, failed: int) -> CountCell:
    return CountCell(place, calls, {"not_json": failed})


@each_of(product((0.002, 0.1, 0.8), (0.001, 0.1, 1.0)))
def test_the_likelihoods_of_all_counts_add_up_to_one(mean: float, variation: float) -> None:
    rate = Rate(mean, variation)
    whole = sum(comb(40, k) * exp(rate.log_likelihood(k, 40)) for k in range(41))
    assert whole == pytest.approx(1)


def test_the_mean_of_the_counts_is_the_rate() -> None:
    rate = Rate(0.1, 0.3)
    mean = sum(k * comb(40, k) * exp(rate.log_likelihood(k, 40)) for k in range(41)) / 40
    assert mean == pytest.approx(0.1)


def test_a_share_of_the_calls_that_succeeded_is_hit() -> None:
    assert Rate(0.1, 0.3).raised(0.5, 0.2).mean == pytest.approx(0.55)
    assert Rate(0.5, 0.1).shifted(0.0).mean == pytest.approx(0.5)


@each_of(product((20, 30, 40), (5.0, 60.0)))
def test_a_usual_rate_that_few_failures_told_explains_as_many_as_it_may_be_off_by(
    failed: int, known: float
) -> None:
    rate, variation = Rate(0.05, 0.001), 1 / (KNOWN_MODEL + known)
    fit = RatioTable(KIND, [[*rate.ratios(failed, 400), known]], 0.0).fit(frozenset({0}))
    usual = rate.log_likelihood(failed, 400)
    offs = [step / 200 for step in range(-400, 401)]
    weights = [exp(-off * off / 2 / variation) for off in offs]
    others = (exp(rate.shifted(off).log_likelihood(failed, 400) - usual) for off in offs)
    whole = sum(weight * one for weight, one in zip(weights, others, strict=True)) / sum(weights)
    assert fit.noise == pytest.approx(log(whole), abs=0.3)


def test_a_rate_of_many_calls_is_their_own_and_is_known_well() -> None:
    other = PLACE._replace(model="two")
    baseline = CellBaseline.of([cell(PLACE, 10_000, 500), cell(other, 10_000, 10)])
    rate = baseline.rate(PLACE, KIND)
    assert rate.mean == pytest.approx(0.05, rel=0.05)
    assert rate.variation < 0.003


def test_a_new_version_is_compared_with_what_it_replaced() -> None:
    baseline = CellBaseline.of([cell(PLACE, 10_000, 500)])
    rate = baseline.rate(PLACE._replace(prompt_version="v2"), KIND)
    assert rate.mean == pytest.approx(0.05, rel=0.05)
    assert rate.variation == 0.25


def test_a_model_that_nobody_called_is_known_least() -> None:
    baseline = CellBaseline.of([cell(PLACE, 10_000, 500)])
    assert baseline.rate(PLACE._replace(model="new"), KIND).variation == 1.0


def test_a_source_that_never_tells_of_anything_good_has_no_rate() -> None:
    failures_alone = CountCell(Dimensions(source="crm"), 40, {"not_json": 40}, 9, 9)
    with_good_runs = CountCell(Dimensions(source="bot"), 40, {"not_json": 40}, 9, 8)
    kept, before = without_failure_only([failures_alone, with_good_runs], [failures_alone])
    assert kept == [with_good_runs]
    assert not before


def test_calm_hours_have_less_noise_than_restless_ones() -> None:
    calm = [[(200, 10)] * 48]
    restless = [[(200, 1), (200, 19)] * 24]
    assert noise_of_hours(calm) < 0.05 < 0.5 < noise_of_hours(restless)


def test_without_hours_a_little_noise_is_assumed() -> None:
    assert noise_of_hours([]) == pytest.approx(0.1)
    assert noise_of_hours([[]]) == pytest.approx(0.1)


def test_a_sum_of_large_logarithms_is_finite() -> None:
    assert log_sum([1_000.0, 1_000.0]) == pytest.approx(1_000.693, abs=1e-3)


def test_the_same_calls_before_are_learned_once() -> None:
    before = [cell(PLACE, 100, 3), cell(PLACE._replace(source="crm"), 50, 9)]
    known = CellBaseline.of(before)
    assert CellBaseline.of(list(before)) is known
    assert CellBaseline.of([before[0], cell(PLACE, 50, 9)]) is not known

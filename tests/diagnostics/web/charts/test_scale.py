"""One axis for every row of a table."""

import pytest

from diagnostics.web.charts.scales import rate_scale


@pytest.mark.parametrize(
    ("highest", "top"),
    [
        (0.0, 0.05),
        (0.05, 0.05),  # a rate at the end still fits
        (0.051, 0.10),
        (0.31, 0.50),
        (0.51, 1.0),
        (1.0, 1.0),
    ],
)
def test_axis_is_the_smallest_that_holds_every_rate(highest: float, top: float) -> None:
    assert rate_scale([0.01, highest], 200).high == top


def test_axis_without_rates_is_the_smallest() -> None:
    assert rate_scale([], 200).high == 0.05


def test_ticks_begin_and_end_at_the_ends() -> None:
    ticks = list(rate_scale([0.4], width=200).ticks())
    assert (ticks[0].place, ticks[0].label) == (6, "0")
    assert (ticks[-1].place, ticks[-1].label) == (194, "50")


def test_positions_grow_with_the_rate_and_stay_on_the_axis() -> None:
    scale = rate_scale([0.2], width=200)
    places = [scale.position(rate) for rate in (-1.0, 0.0, 0.01, 0.1, 0.25, 0.9)]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (6, 194)


def test_small_rates_stay_apart_beside_a_large_one() -> None:
    scale = rate_scale([0.4], width=200)
    assert scale.position(0.05) - scale.position(0.02) > 15

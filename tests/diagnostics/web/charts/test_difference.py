"""A difference of rates around zero: places, axis, words."""

import pytest

from diagnostics.figures import MINUS
from diagnostics.web.charts.bars import difference_bar
from diagnostics.web.charts.scales import difference_scale


@pytest.mark.parametrize(
    ("bounds", "reach"), [([], 0.01), ([0.01, -0.03], 0.04), ([-0.3, 0.1], 0.4), ([-1.0, 1.0], 1.0)]
)
def test_the_axis_holds_every_bound(bounds: list[float], reach: float) -> None:
    assert difference_scale(bounds, 200).high == reach


def test_zero_is_in_the_middle_and_ticks_are_signed() -> None:
    scale = difference_scale([0.2], 228)
    assert scale.position(0.0) == 114
    assert [tick.label for tick in scale.ticks()] == [f"{MINUS}20", f"{MINUS}5", "0", "+5", "+20"]
    assert scale.position(-0.2) == 14
    assert scale.position(0.9) == 214


def test_a_bar_spans_its_interval_and_says_it() -> None:
    scale = difference_scale([0.2], 228)
    bar = difference_bar(scale, "bad", 0.1, 0.05, 0.2)
    assert (bar.low_x, bar.x, bar.low_x + bar.range_width) == (164.0, 184.7, 214.0)
    assert bar.text.replace("\u202f", " ") == ("+10.0 pt, 95 % interval +5.0 pt to +20.0 pt")


def test_small_differences_stay_readable_beside_large_ones() -> None:
    scale = difference_scale([0.5, -0.03], 228)
    assert scale.position(0.03) - scale.position(0.0) > 20
    assert [tick.place for tick in scale.ticks()] == [14.0, 64.0, 114.0, 164.0, 214.0]


def test_an_interval_of_no_width_is_still_seen() -> None:
    assert difference_bar(difference_scale([], 200), "quiet", 0, 0, 0).range_width >= 1

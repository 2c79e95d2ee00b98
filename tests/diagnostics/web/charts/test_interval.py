"""A rate, its interval and its baseline."""

from diagnostics.web.charts.bars import interval_bar
from diagnostics.web.charts.scales import rate_scale

SCALE = rate_scale([0.4], width=200)


def test_bar_spans_the_interval_and_holds_the_rate() -> None:
    bar = interval_bar(SCALE, "bad", 0.31, 0.271, 0.353, 0.041)
    assert bar.low_x < bar.x < bar.low_x + bar.range_width
    assert bar.base_x is not None
    assert bar.base_x < bar.low_x


def test_text_says_what_the_bar_shows() -> None:
    text = interval_bar(SCALE, "bad", 0.31, 0.271, 0.353, 0.041).text
    assert text == ("31.0 % degraded, 95 % interval 27.1 to 35.3 %, baseline 4.1 %")


def test_series_without_a_past_has_no_baseline_tick() -> None:
    bar = interval_bar(SCALE, "bad", 0.1, 0.05, 0.2, None)
    assert bar.base_x is None
    assert "no baseline yet" in bar.text


def test_interval_of_no_width_is_still_seen() -> None:
    assert interval_bar(SCALE, "bad", 0.0, 0.0, 0.0, 0.0).range_width >= 1

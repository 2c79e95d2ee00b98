"""The degraded share over time."""

from diagnostics.store.windows import RunBucket
from diagnostics.web.charts.bars import sparkline


def test_each_bucket_is_drawn_once_in_its_kind() -> None:
    buckets = [RunBucket(10, 1), RunBucket(0, 0), RunBucket(10, 5)]
    drawn = sparkline(buckets, 0.05, top=0.5, hours=24, hot_from=2)
    assert [kind.count("M") for kind in (drawn.bars, drawn.hot)] == [1, 1]
    assert drawn.hot.startswith("M10 ")


def test_share_at_the_top_fills_the_height() -> None:
    drawn = sparkline([RunBucket(10, 5)], None, top=0.5, hours=24)
    assert "v-28" in drawn.bars
    assert drawn.baseline_y is None


def test_share_beyond_the_top_stays_inside() -> None:
    drawn = sparkline([RunBucket(1, 1)], None, top=0.5, hours=24)
    assert "v-28" in drawn.bars


def test_runs_without_failure_are_not_nothing() -> None:
    drawn = sparkline([RunBucket(10, 0), RunBucket(0, 0)], None, top=0.5, hours=24)
    assert drawn.bars.count("M") == 1


def test_a_calm_stretch_is_one_line_along_the_ground() -> None:
    drawn = sparkline([RunBucket(10, 0)] * 3 + [RunBucket(10, 5)], None, top=0.5, hours=24)
    assert drawn.bars == "M0 27h12M14 28v-28"


def test_no_buckets_are_an_empty_drawing() -> None:
    drawn = sparkline([], None, top=0.5, hours=24)
    assert (drawn.bars, drawn.hot) == ("", "")


def test_text_names_the_peak_and_the_end() -> None:
    buckets = [RunBucket(10, 4), RunBucket(20, 1), RunBucket(0, 0)]
    assert sparkline(buckets, None, 0.5, 24).text == (
        "degraded share, last 24 h: highest 40 % of 10 runs, latest 5 % of 20"
    )


def test_text_says_when_nothing_ran() -> None:
    assert sparkline([RunBucket(0, 0)], None, 0.5, 24).text == "no runs in the last 24 h"

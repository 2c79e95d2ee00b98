"""The strip of the sum behind an alarm."""

from datetime import UTC, datetime, timedelta

from diagnostics.store.windows import RunBucket
from diagnostics.web.charts.cusum import HEIGHT, draw_sums
from diagnostics.web.charts.series import SeriesChart

SINCE = datetime(2026, 11, 21, tzinfo=UTC)
HALF_HOUR = timedelta(minutes=30)
GOOD, BAD, NONE = RunBucket(20, 1), RunBucket(20, 8), RunBucket(0, 0)
USUAL = (0.04, 0.03, 0.05)


def chart(*slots: RunBucket, usual: tuple[float, float, float] | None = USUAL) -> SeriesChart:
    return SeriesChart("calls", "Failed", SINCE, HALF_HOUR, slots, baseline=usual)


def test_the_sum_leaves_zero_where_it_began_and_crosses_the_alarm() -> None:
    sums = draw_sums(chart(*[GOOD, RunBucket(20, 0)] * 10, *[BAD] * 6))
    assert sums is not None
    assert sums.last_zero == SINCE + 20 * HALF_HOUR
    assert sums.fired_at is not None
    assert sums.last_zero < sums.fired_at <= SINCE + 25 * HALF_HOUR
    assert sums.steps[-1].level >= 1.0
    assert "above the alarm, last zero at 2026-11-21 10:00 UTC" in sums.text
    assert 0 < sums.alarm_y < HEIGHT


def test_a_quiet_series_is_at_zero() -> None:
    sums = draw_sums(chart(*[RunBucket(20, 0)] * 20))
    assert sums is not None
    assert (sums.last_zero, sums.fired_at, sums.steps) == (None, None, ())
    assert "nothing speaks for a worsening" in sums.text


def test_silence_leaves_the_sum_as_it_is() -> None:
    sums = draw_sums(chart(*[RunBucket(20, 0)] * 4, BAD, NONE, NONE))
    assert sums is not None
    assert len({step.level for step in sums.steps}) == 1
    assert len(sums.steps) == 3


def test_without_a_baseline_there_is_no_sum() -> None:
    assert draw_sums(chart(GOOD, usual=None)) is None
    assert draw_sums(chart()) is None

"""The strip of the evidence behind an alarm."""

from datetime import UTC, datetime, timedelta

from diagnostics.store.windows import RunBucket
from diagnostics.web.charts.evidence import HEIGHT, draw_evidence
from diagnostics.web.charts.series import SeriesChart

SINCE = datetime(2026, 11, 21, tzinfo=UTC)
HALF_HOUR = timedelta(minutes=30)
GOOD, BAD, NONE = RunBucket(20, 1), RunBucket(20, 8), RunBucket(0, 0)
USUAL = (0.04, 0.03, 0.05)


def chart(*slots: RunBucket, usual: tuple[float, float, float] | None = USUAL) -> SeriesChart:
    return SeriesChart("calls", "Failed", SINCE, HALF_HOUR, slots, baseline=usual)


def test_the_evidence_crosses_the_alarm_after_the_onset() -> None:
    drawn = draw_evidence(chart(*[GOOD, RunBucket(20, 0)] * 10, *[BAD] * 6))
    assert drawn is not None
    assert drawn.onset is not None
    assert abs(drawn.onset - SINCE - 20 * HALF_HOUR) <= HALF_HOUR
    assert drawn.fired_at is not None
    assert drawn.onset < drawn.fired_at <= SINCE + 25 * HALF_HOUR
    assert drawn.steps[-1].level >= 1.0
    assert f"above the alarm, since {drawn.onset:%Y-%m-%d %H:%M} UTC" in drawn.text
    assert 0 < drawn.alarm_y < HEIGHT


def test_a_quiet_series_has_no_onset() -> None:
    drawn = draw_evidence(chart(*[RunBucket(20, 0)] * 20))
    assert drawn is not None
    assert (drawn.onset, drawn.fired_at, drawn.steps) == (None, None, [])
    assert "0% of the alarm" in drawn.text


def test_silence_leaves_the_evidence_as_it_is() -> None:
    before = draw_evidence(chart(*[RunBucket(20, 0)] * 4, BAD))
    after = draw_evidence(chart(*[RunBucket(20, 0)] * 4, BAD, NONE, NONE))
    assert before is not None
    assert after is not None
    assert before.text == after.text


def test_without_a_baseline_there_is_no_evidence() -> None:
    assert draw_evidence(chart(GOOD, usual=None)) is None
    assert draw_evidence(chart()) is None

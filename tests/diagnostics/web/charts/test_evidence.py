"""The strip of the evidence behind an alarm."""

from datetime import UTC, datetime, timedelta

from diagnostics.analysis.series import SeriesOnset
from diagnostics.store.windows import RunBucket
from diagnostics.web.charts.series import SeriesChart
from diagnostics.web.charts.strips import EVIDENCE_HEIGHT, draw_evidence

SINCE = datetime(2026, 11, 21, tzinfo=UTC)
HALF_HOUR = timedelta(minutes=30)
GOOD, BAD, NONE = RunBucket(20, 1), RunBucket(20, 8), RunBucket(0, 0)
USUAL = (0.04, 0.03, 0.05)


ONSET = SeriesOnset(SINCE + 20 * HALF_HOUR, SINCE + 19 * HALF_HOUR, SINCE + 21 * HALF_HOUR)


def chart(
    *slots: RunBucket,
    usual: tuple[float, float, float] | None = USUAL,
    onset: SeriesOnset | None = None,
) -> SeriesChart:
    return SeriesChart(
        name="calls",
        title="Failed",
        since=SINCE,
        width=HALF_HOUR,
        slots=slots,
        baseline=usual,
        onset=onset,
    )


def test_the_evidence_crosses_the_alarm_after_the_onset_of_the_chart() -> None:
    drawn = draw_evidence(chart(*[GOOD, RunBucket(20, 0)] * 10, *[BAD] * 6, onset=ONSET))
    assert drawn is not None
    assert drawn.onset_x == round(20 / 26 * 1000, 1)
    assert [level >= 1.0 for _, level in drawn.steps[::5]] == [False, True]
    assert len(drawn.steps) == 6
    assert 0 < drawn.alarm_y < EVIDENCE_HEIGHT


def test_a_chart_without_an_onset_has_none_in_its_strip() -> None:
    drawn = draw_evidence(chart(*[RunBucket(20, 0)] * 20))
    assert drawn is not None
    assert (drawn.onset_x, drawn.steps) == (None, [])
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

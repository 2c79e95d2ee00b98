"""How a series stands: as its detector says, with what was counted."""

from datetime import UTC, datetime, timedelta

import pytest

from diagnostics.analysis.series import (
    NO_COUNTS,
    NOTHING,
    DetectedState,
    SeriesKey,
    SeriesOnset,
    SeriesState,
    SeriesStatus,
    UnitCounts,
    status_of,
)
from diagnostics.store.windows import RunBucket

AT = datetime(2026, 11, 21, tzinfo=UTC)
KEY = SeriesKey("prod", "plan", "anthropic", "haiku")
ONSET = SeriesOnset(AT - timedelta(hours=2), AT - timedelta(hours=3), AT - timedelta(hours=1))
CALM, FIRING = DetectedState(), DetectedState(ONSET, RunBucket(40, 12))
WATCHED = DetectedState(is_watched=True)
HEALTHY, FAILING = RunBucket(1000, 44), RunBucket(30, 30)


def calls(counted: RunBucket) -> UnitCounts:
    return UnitCounts(NOTHING, counted)


def status(
    day: UnitCounts, detected: DetectedState | None = CALM, before: UnitCounts = NO_COUNTS
) -> SeriesStatus:
    return status_of(KEY, AT, day, before, detected)


@pytest.mark.parametrize(
    ("day", "detected", "state"),
    [
        pytest.param(calls(HEALTHY), CALM, SeriesState.OK, id="well"),
        pytest.param(calls(HEALTHY), FIRING, SeriesState.DEGRADING, id="fires"),
        pytest.param(calls(HEALTHY), WATCHED, SeriesState.WATCH, id="some evidence"),
        pytest.param(calls(HEALTHY), None, SeriesState.NOT_JUDGED, id="no detector"),
        pytest.param(calls(RunBucket(19, 0)), CALM, SeriesState.LOW_VOLUME, id="few calls"),
        pytest.param(calls(RunBucket(19, 0)), None, SeriesState.LOW_VOLUME, id="few, no detector"),
        pytest.param(calls(RunBucket(19, 9)), FIRING, SeriesState.DEGRADING, id="few, and fires"),
        pytest.param(NO_COUNTS, CALM, SeriesState.NO_DATA, id="nothing"),
        pytest.param(NO_COUNTS, FIRING, SeriesState.NO_DATA, id="no call in eight days"),
        pytest.param(calls(FAILING), CALM, SeriesState.NO_DATA, id="failures alone"),
        pytest.param(UnitCounts(FAILING), FIRING, SeriesState.DEGRADING, id="all runs degraded"),
        pytest.param(UnitCounts(FAILING, FAILING), FIRING, SeriesState.DEGRADING, id="with calls"),
    ],
)
def test_a_series_stands_as_its_detector_says(
    day: UnitCounts, detected: DetectedState | None, state: SeriesState
) -> None:
    assert status(day, detected).state is state


def test_a_degrading_series_counts_since_the_onset_and_others_the_day() -> None:
    bad, well = status(calls(HEALTHY), FIRING), status(calls(HEALTHY), WATCHED)
    assert (bad.onset, bad.runs, bad.degraded) == (ONSET, 40, 12)
    assert (well.onset, well.runs, well.degraded) == (None, 1000, 44)


def test_calls_are_the_unit_where_they_are_told() -> None:
    both = UnitCounts(RunBucket(500, 0), RunBucket(700, 200))
    assert (status(both).unit, status(both).degraded) == ("call", 200)
    runs = status(UnitCounts(RunBucket(500, 3)), before=UnitCounts(RunBucket(100, 4)))
    assert (runs.unit, runs.degraded, runs.baseline) == ("run", 3, 0.04)
    silent = status(NO_COUNTS, before=both)
    assert (silent.unit, silent.baseline) == ("call", 200 / 700)


def test_the_worst_comes_first() -> None:
    worse = status(calls(HEALTHY), DetectedState(ONSET, RunBucket(40, 30)))
    bad, ok, none = status(calls(HEALTHY), FIRING), status(calls(HEALTHY)), status(NO_COUNTS)
    assert sorted([none, ok, bad, worse], key=lambda one: one.rank) == [worse, bad, ok, none]

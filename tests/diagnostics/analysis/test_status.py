"""How a series stands: against its own baseline, at one moment, with the interval in mind."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from diagnostics.analysis.series import RunCurve, SeriesKey
from diagnostics.analysis.status import SeriesOnset, SeriesState, SeriesStatus, state_of, status_of
from diagnostics.store.windows import RunBucket

SINCE = datetime(2026, 11, 21, tzinfo=UTC)
WIDTH = timedelta(minutes=10)
KEY = SeriesKey("prod", "plan", "anthropic", "haiku")
GOOD = RunBucket(15, 0)
USUAL = RunBucket(1000, 44)

# degraded, runs, (degraded, runs) of the baseline, state
JUDGED = [
    (0, 0, (10, 100), SeriesState.NO_DATA),
    (1, 100, (1, 100), SeriesState.OK),
    (31, 100, (4, 100), SeriesState.DEGRADING),
    (8, 100, (2, 100), SeriesState.WATCH),  # the rate is above the bar, its bound is not
    (19, 19, (0, 100), SeriesState.LOW_VOLUME),  # all bad, but too few to say so
    (20, 20, (0, 0), SeriesState.DEGRADING),
    (30, 100, (25, 100), SeriesState.OK),  # always this bad
    (70, 100, (25, 100), SeriesState.DEGRADING),
    (24, 500, (60, 3000), SeriesState.WATCH),  # 4.8 % against 2 %, surely above
    (14, 500, (60, 3000), SeriesState.OK),  # 2.8 %: chance
    (24, 500, (4, 20), SeriesState.OK),  # too little is known of the baseline
    (400, 20_000, (3600, 300_000), SeriesState.OK),  # surely above, by less than a point
    (1, 12, (60, 3000), SeriesState.LOW_VOLUME),
]


@pytest.mark.parametrize(("degraded", "runs", "usual", "state"), JUDGED)
def test_counts_are_judged_against_their_baseline(
    degraded: int, runs: int, usual: tuple[int, int], state: SeriesState
) -> None:
    assert state_of(RunBucket(runs, degraded), RunBucket(usual[1], usual[0])) is state


def status(buckets: Sequence[RunBucket], incident: SeriesOnset | None = None) -> SeriesStatus:
    curve = RunCurve(SINCE, WIDTH, buckets)
    return status_of(KEY, SINCE + timedelta(days=1), curve, USUAL, incident)


def test_a_fresh_trouble_counts_in_a_long_day() -> None:
    fresh = status([GOOD] * 19 + [RunBucket(40, 12), RunBucket(60, 20)])
    assert fresh.state is SeriesState.DEGRADING
    assert fresh.since == SINCE + 19 * WIDTH
    assert (fresh.runs, fresh.degraded) == (100, 32)
    assert fresh.interval is not None
    assert fresh.interval[0] < 0.32 < fresh.interval[1]
    assert fresh.excess == pytest.approx(32 - 4.4)


def test_the_onset_of_an_incident_wins_over_that_of_the_series() -> None:
    at = SINCE + 18 * WIDTH + timedelta(minutes=3)
    incident = SeriesOnset(at, at, at)
    found = status([GOOD] * 19 + [RunBucket(40, 12), RunBucket(60, 20)], incident)
    assert found.onset is incident
    assert found.runs == 115


def test_an_incident_gives_no_onset_to_a_series_that_is_well() -> None:
    incident = SeriesOnset(SINCE, SINCE, SINCE)
    found = status([GOOD] * 26, incident)
    assert (found.state, found.since) == (SeriesState.OK, None)


def test_without_an_onset_the_day_decides() -> None:
    calm = status([GOOD] * 26)
    assert (calm.state, calm.since, calm.runs) == (SeriesState.OK, None, 390)


def test_a_handful_of_runs_since_the_onset_is_not_judged() -> None:
    assert status([GOOD] * 26 + [RunBucket(6, 5)]).state is SeriesState.OK


def test_the_worst_comes_first() -> None:
    ok, bad = status([GOOD] * 20), status([RunBucket(100, 50)])
    worse, none = status([RunBucket(100, 90)]), status([])
    assert sorted([none, ok, bad, worse], key=lambda one: one.rank) == [worse, bad, ok, none]

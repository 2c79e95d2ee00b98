"""The rhythm of a series, shrunk to that of its project, and what all series do of late."""

import pytest

from diagnostics.analysis.detectors.noise import ALONE, NO_NOISE
from diagnostics.analysis.detectors.rhythm import (
    HOUR,
    PLACES,
    UNSEEN_PLACES,
    Drift,
    PlaceCounts,
    RecentCounts,
    place_of,
    rhythm_at,
)
from diagnostics.analysis.detectors.usual import EndedHour, Learned

NOTHING = PlaceCounts([0.0] * PLACES, [0.0] * PLACES)
EVEN = PlaceCounts([20.0] * PLACES, [20.0] * PLACES)
NIGHTS = PlaceCounts([40.0 if place % 24 < 6 else 10.0 for place in range(PLACES)], [20.0] * PLACES)


def test_nothing_is_expected_of_hours_that_nobody_saw() -> None:
    assert rhythm_at(3, NOTHING, NOTHING).factor == pytest.approx(1.0)


def test_a_series_without_a_past_has_the_rhythm_of_its_project() -> None:
    assert rhythm_at(3, NOTHING, NIGHTS).factor > 1.7
    assert rhythm_at(12, NOTHING, NIGHTS).factor < 0.65


def test_hours_of_a_project_without_a_rhythm_are_known_better() -> None:
    assert rhythm_at(3, NOTHING, EVEN).variance < rhythm_at(3, NOTHING, NIGHTS).variance / 2
    assert rhythm_at(3, NOTHING, NIGHTS).variance < rhythm_at(3, NOTHING, NOTHING).variance


NOON = 5 * 24 + 12
NOTHING_YET, UNKNOWN = RecentCounts(), Drift()


def factors(*hours: tuple[float, float], known: Drift = UNKNOWN) -> list[float]:
    """Return what is expected of each series at noon, by (failed, expected) of the hour before."""
    own = [NOTHING_YET.plus(NOON - 1, *hour) for hour in hours]
    project = NOTHING_YET
    for one in own:
        project = project.plus(*one.of_many)
    return [known.follow(project, one, NOON)[0] for one in own]


def test_what_all_others_do_of_late_is_expected_of_a_series() -> None:
    assert factors(*[(14.0, 10.0)] * 48) == pytest.approx([1.35] * 48, abs=0.05)


def test_an_incident_of_all_series_is_not_expected_of_any() -> None:
    assert factors(*[(50.0, 10.0)] * 48) == pytest.approx([1.0] * 48, abs=0.01)


def test_what_a_series_does_itself_is_not_expected_of_it() -> None:
    alone, *others = factors((90.0, 10.0), *[(10.0, 10.0)] * 47)
    assert alone == pytest.approx(1.0)
    assert max(others) < 1.1
    assert factors((40.0, 10.0)) == [1.0]


def test_a_few_failures_of_a_small_project_say_nothing_of_late() -> None:
    assert max(factors(*[(4.0, 1.0)] * 3)) < 1.15


def test_a_calm_project_expects_less_of_late_than_one_that_often_strays() -> None:
    calm, restless = Drift(0.0, 1000.0), Drift(80.0, 1000.0)
    assert factors(*[(16.0, 10.0)] * 48, known=calm)[0] == pytest.approx(1.0, abs=0.05)
    assert factors(*[(16.0, 10.0)] * 48, known=restless)[0] > 1.5


def test_an_hour_that_all_series_stray_in_teaches_and_an_incident_does_not() -> None:
    project = RecentCounts(NOON - 1, 1400.0, 1000.0)
    _, strayed = UNKNOWN.follow(project, NOTHING_YET, NOON)
    assert strayed.squares > 0.05
    _, known = UNKNOWN.follow(project._replace(failed=9000.0), NOTHING_YET, NOON)
    assert known == pytest.approx((0.0, 0.0), abs=1e-3)


def test_hours_before_those_of_the_project_are_judged_without_it() -> None:
    project = RecentCounts(NOON + 14 * 24, 1400.0, 1000.0)
    told = UNKNOWN.follow(project, NOTHING_YET, NOON)
    assert told == (1.0, UNKNOWN)
    own = RecentCounts(NOON - 1, 500.0, 20.0)
    factor, _ = UNKNOWN.follow(RecentCounts(NOON - 1, 1.0, 40.0), own, NOON)
    assert factor == 1.0


def test_a_restless_series_takes_longer_to_learn_that_an_hour_is_a_good_one() -> None:
    """Each noon of three days half as many of its many calls fail as in the other hours."""

    def factor_at_noon(variation: float) -> float:
        learned = Learned()
        for hour in range(NOON // 24 * 24, NOON // 24 * 24 + 3 * 24):
            failed = 10.0 if hour % 24 in (11, 12, 13) else 20.0
            ended = EndedHour(hour, 1000.0, failed, 1.0, NO_NOISE, ALONE)
            learned.learn(ended, variation)
        return rhythm_at(place_of(NOON * HOUR), learned.places, UNSEEN_PLACES).factor

    assert factor_at_noon(0.0) < 0.75
    assert factor_at_noon(0.4) > 0.85

"""The rhythm of a series, shrunk to that of its project, and what all series do of late."""

import pytest

from diagnostics.analysis.detectors.rhythm import (
    MOST_OF_LATE,
    NOTHING_LATELY,
    PLACES,
    UNSEEN_PLACES,
    Lately,
    PlaceCounts,
    rhythm_at,
)

EVEN = PlaceCounts([20.0] * PLACES, [20.0] * PLACES)
NIGHTS = PlaceCounts([40.0 if place < 6 else 10.0 for place in range(PLACES)], [20.0] * PLACES)


def test_nothing_is_expected_of_hours_that_nobody_saw() -> None:
    assert rhythm_at(3, UNSEEN_PLACES, UNSEEN_PLACES).factor == pytest.approx(1.0)


def test_a_series_without_a_past_has_the_rhythm_of_its_project() -> None:
    assert rhythm_at(3, UNSEEN_PLACES, NIGHTS).factor > 1.7
    assert rhythm_at(12, UNSEEN_PLACES, NIGHTS).factor < 0.65


def test_hours_of_a_project_without_a_rhythm_are_known_better() -> None:
    unseen = rhythm_at(3, UNSEEN_PLACES, UNSEEN_PLACES).variance
    assert rhythm_at(3, UNSEEN_PLACES, EVEN).variance < unseen
    assert rhythm_at(3, UNSEEN_PLACES, EVEN).variance < (
        rhythm_at(3, UNSEEN_PLACES, NIGHTS).variance / 2
    )


def test_a_series_seen_at_good_hours_only_has_the_rhythm_of_its_project() -> None:
    days = [5.0 if 6 <= place < 18 else 0.0 for place in range(PLACES)]
    good = PlaceCounts(days, days)
    assert rhythm_at(12, good, NIGHTS).factor < 0.65
    assert rhythm_at(2, good, NIGHTS).factor > 1.7


def lately(hour: int, *series: tuple[float, float, float]) -> tuple[Lately, list[Lately]]:
    """Return what series of (failed, calls, level) tell together of an hour, and each of them."""
    told = [NOTHING_LATELY.plus(hour, bad, calls).at_level(level) for bad, calls, level in series]
    total = NOTHING_LATELY
    for one in told:
        total = total.plus(*one)
    return total, told


def test_what_all_others_do_of_late_is_expected_of_a_series_whatever_the_day() -> None:
    for hour in (5 * 24, 6 * 24 + 14):
        total, told = lately(hour, *[(14.0, 200.0, 0.05)] * 48)
        assert total.without(told[0], hour + 1) == pytest.approx(1.4, abs=0.05)


def test_what_a_series_does_itself_is_not_expected_of_it() -> None:
    total, told = lately(9, (100.0, 200.0, 0.05), *[(10.0, 200.0, 0.05)] * 47)
    assert total.without(told[0], 10) == pytest.approx(1.0)
    assert total.without(told[1], 10) < 1.1


def test_one_series_alone_expects_nothing_of_late() -> None:
    total, told = lately(9, (40.0, 200.0, 0.05))
    assert total.without(told[0], 10) == 1.0


def test_an_outage_of_all_series_is_no_rhythm() -> None:
    total, told = lately(9, *[(100.0, 200.0, 0.05)] * 48)
    assert total.without(told[0], 10) == MOST_OF_LATE


def test_what_was_hours_ago_is_not_of_late() -> None:
    total, told = lately(9, *[(14.0, 200.0, 0.05)] * 48)
    assert total.without(told[0], 9 + 8) == pytest.approx(1.0, abs=0.01)

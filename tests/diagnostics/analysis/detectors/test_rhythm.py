"""The rhythm of a series, shrunk to that of its project."""

import pytest

from diagnostics.analysis.detectors.rhythm import PLACES, PlaceCounts, rhythm_at

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

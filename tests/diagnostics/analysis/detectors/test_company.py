"""How many failures come together, so that so many calls count as one."""

import pytest

from diagnostics.analysis.detectors.noise import ALONE, Company

CLUMPED = ((75, 0), (75, 30), (75, 0), (75, 10))
SPREAD = ((75, 10), (75, 10), (75, 11), (75, 9))


def known(*hours: tuple[tuple[int, int], ...]) -> Company:
    total = ALONE
    for one in hours:
        total = total.plus(Company.of(one))
    return total


def test_failures_of_a_new_project_are_taken_to_come_in_twos() -> None:
    assert ALONE.size(ALONE) == 2.0


def test_failures_that_are_spread_are_alone_after_a_day() -> None:
    spread = known(*[SPREAD] * 24)
    assert spread.size(ALONE) == 1.0


def test_one_hour_of_many_failures_tells_less_than_the_hours_of_the_project() -> None:
    project = known(*[CLUMPED] * 48)
    assert project.size(ALONE) > 5
    assert known(SPREAD).size(project) == pytest.approx(project.size(ALONE), rel=0.3)


def test_a_series_whose_failures_are_spread_learns_so_beside_a_project_that_is_clumped() -> None:
    project = known(*[CLUMPED] * 480)
    assert known(*[SPREAD] * 168).size(project) == 1.0

"""Every project has its turn of a minute: none delays another, and what was left is told."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.clock import DatabaseNow
from diagnostics.store.deadlines import TurnPart, all_turns_until, give_turns
from diagnostics.store.models import ProjectTurn

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def projects() -> list[int]:
    return [Project.objects.create(slug=slug, name=slug).pk for slug in ("a", "b", "c")]


def part(work: Callable[[int], None], name: str = "work", seconds: float = 30) -> TurnPart:
    def count(project_id: int, now: datetime) -> int:
        work(project_id)
        return 1

    return TurnPart(name, count, seconds)


def run_for_ever(_: int) -> None:
    while True:
        sum(range(1_000))


def fail(_: int) -> None:
    raise ZeroDivisionError


def test_a_turn_is_given_once_a_minute(projects: list[int]) -> None:
    seen: list[int] = []
    now = clock.now()
    assert [give_turns([part(seen.append)], now, 60) for _ in range(2)] == [3, 0]
    assert give_turns([part(seen.append)], now + MINUTE, 60) == 3
    assert give_turns([part(seen.append)], now, 60) == 0
    assert sorted(seen) == sorted(projects * 2)


def test_a_project_that_does_not_end_in_time_delays_no_other_and_no_other_part(
    projects: list[int],
) -> None:
    seen: list[int] = []
    large = projects[0]

    def judge(project_id: int) -> None:
        if project_id == large:
            run_for_ever(project_id)

    now = clock.now()
    assert give_turns([part(judge, "statuses", 0.1), part(seen.append, "alerts")], now, 60) == 5
    assert sorted(seen) == projects
    told = {row.pk: (row.passed_over, row.judged_at) for row in ProjectTurn.objects.all()}
    assert told == {large: (["statuses"], None)} | dict.fromkeys(projects[1:], ([], now))
    assert all_turns_until() > now - MINUTE


def test_a_project_that_was_not_reached_is_the_next(projects: list[int]) -> None:
    seen: list[int] = []
    now = clock.now()
    for minute in range(6):
        # Time for one turn only.
        give_turns([part(seen.append)], now + minute * MINUTE, 1e-9)
    assert seen == projects * 2


def test_a_part_that_fails_is_told_and_given_again(projects: list[int]) -> None:
    now = clock.now()
    assert give_turns([part(fail, "statuses"), part(lambda _: None, "alerts")], now, 60) == 3
    assert {tuple(row.passed_over) for row in ProjectTurn.objects.all()} == {("statuses",)}
    assert give_turns([part(lambda _: None)], now, 60) == 0
    ProjectTurn.objects.update(began_at=DatabaseNow() - MINUTE, ended_at=DatabaseNow() - 2 * MINUTE)
    assert give_turns([part(lambda _: None)], now, 60) == 3
    assert not ProjectTurn.objects.exclude(passed_over=[]).exists()


def test_turns_go_on_after_the_clock_was_set_back(projects: list[int]) -> None:
    now = clock.now()
    give_turns([part(lambda _: None)], now + 120 * MINUTE, 60)
    ahead = now + 120 * MINUTE
    ProjectTurn.objects.update(began_at=ahead, ended_at=ahead)
    assert give_turns([part(lambda _: None)], now, 60) == 3
    assert give_turns([part(lambda _: None)], now, 60) == 0
    assert give_turns([part(lambda _: None)], now + MINUTE, 60) == 3


def test_turns_that_stand_still_are_told(projects: list[int]) -> None:
    now = clock.now()
    give_turns([part(lambda _: None)], now, 60)
    ProjectTurn.objects.filter(pk=projects[1]).update(ended_at=now - 5 * MINUTE)
    assert all_turns_until() == now - 5 * MINUTE

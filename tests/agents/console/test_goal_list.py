"""The list of goals."""

from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from agents.console.goal_list import PAGE
from agents.goals.models import Goal
from agents.goals.planning_stops import stop_planning
from diagnostics import clock
from diagnostics.accounts.models import Project
from tests.agents.console.conftest import Read
from tests.console import make_attempt, make_goal, make_member, make_meta, make_run

OK_STEP = {"step_id": "step_1", "ok": True, "skipped": False}


def make_many(project: Project, number: int) -> None:
    """Make goals g0, g1, ...: the later, the newer."""
    begin = clock.now() - timedelta(hours=1)
    for index in range(number):
        make_goal(project, f"g{index}", at=begin + timedelta(seconds=index))


@pytest.mark.parametrize("status", ["COMPLETED", "PARTIAL", "FAILED", "BLOCKED"])
def test_s2_43_badge_of_an_ended_goal_is_its_task_status(
    project: Project, read: Read, status: str
) -> None:
    ended = "failed" if status in {"FAILED", "BLOCKED"} else "completed"
    goal = make_goal(project, status=ended, outcome="ok_first")
    make_run(goal, [OK_STEP], make_meta(status, 1, 0, 0))
    assert f"</svg>{status}</span>" in read("/goals/")


def test_goal_without_a_run_shows_its_own_status(project: Project, read: Read) -> None:
    make_goal(project, status="failed", outcome="degraded")
    html = read("/goals/")
    assert "</svg>failed</span>" in html
    assert "</svg>degraded</span>" in html


def test_stub_is_never_shown_as_success(project: Project, read: Read) -> None:
    make_goal(project, status="completed", outcome="stubbed", plan_source="stub")
    assert '<span class="state bad">' in read("/goals/")


def test_attempts_are_a_strip_with_words(project: Project, read: Read) -> None:
    goal = make_goal(project)
    make_attempt(goal, 1, error_type="truncated")
    make_attempt(goal, 2, state="valid", error_type=None, errors=[])
    assert 'aria-label="attempts: truncated, valid"' in read("/goals/")


def test_newest_come_first_and_pages_follow_by_keyset(
    project: Project, client: Client, read: Read
) -> None:
    make_many(project, PAGE + 3)
    first = read("/goals/")
    assert first.index(f">g{PAGE + 2}<") < first.index(f">g{PAGE + 1}<")
    oldest_shown = Goal.objects.get(correlation_id="g3")
    assert f"before={oldest_shown.pk}" in first
    second = read("/goals/", before=oldest_shown.pk)
    assert ">g2<" in second
    assert ">g3<" not in second
    back = read("/goals/", after=Goal.objects.get(correlation_id="g2").pk)
    assert ">g3<" in back
    assert ">g2<" not in back


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"status": "failed"}, {"bad"}),
        ({"outcome": "degraded"}, {"bad"}),
        ({"q": "hello"}, {"good"}),
        ({"q": "BA"}, {"bad"}),  # the start of a reference, in any case
        ({"q": "%"}, set()),  # no wildcard
        ({"q": "\0"}, {"good", "bad"}),
        ({"status": "nonsense"}, {"good", "bad"}),
        ({"before": "nonsense"}, {"good", "bad"}),
    ],
)
def test_filters(project: Project, read: Read, query: dict[str, str], found: set[str]) -> None:
    make_goal(project, "good", text_preview="Say Hello", status="completed")
    make_goal(project, "bad", text_preview="Else", status="failed", outcome="degraded")
    html = read("/goals/", **query)
    assert {name for name in ("good", "bad") if f">{name}<" in html} == found


def test_no_match_is_no_empty_project(project: Project, read: Read) -> None:
    make_goal(project)
    assert "No goal matches" in read("/goals/", q="nobody")


def test_empty_list_shows_how_to_submit(read: Read) -> None:
    html = read("/goals/")
    assert "manage.py submit_goal" in html
    assert "/api/v1/goals" in html


def test_running_goals_are_polled_and_ended_ones_are_not(project: Project, read: Read) -> None:
    goal = make_goal(project, status="running")
    assert "data-poll" in read("/goals/")
    Goal.objects.filter(pk=goal.pk).update(status="cancelled")
    assert "data-poll" not in read("/goals/")


def test_foreign_goals_are_not_listed(read: Read) -> None:
    make_goal(Project.objects.create(slug="other", name="Other"), "foreign")
    assert "foreign" not in read("/goals/")


def test_query_count_does_not_grow_with_the_goals(
    project: Project, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_many(project, 20)
    for goal in Goal.objects.all():
        make_attempt(goal)
    # Session, user, memberships, goals, attempts, count; known values and views of the bar;
    # and, as these wait, whether planning is stopped.
    with django_assert_num_queries(10):
        client.get("/goals/")


def test_full_page_keeps_the_budgets(project: Project, read: Read) -> None:
    make_many(project, PAGE + 1)
    for goal in Goal.objects.all():
        make_attempt(goal, 1)
        make_attempt(goal, 2)
    html = read("/goals/")
    assert len(html.encode()) <= 60_000
    assert html.count("<") - html.count("</") <= 1_500


def test_stopped_planning_is_said_where_goals_wait_and_where_one_is_submitted(
    project: Project, read: Read
) -> None:
    stop_planning(project, make_member(project, "zoe"), "the provider moves")
    make_goal(project, status="completed", outcome="ok_first")
    assert "Planning is stopped" not in read("/goals/")
    make_goal(project, "waiting", status="queued")
    for path in ("/goals/", "/goals/new/"):
        html = read(path)
        assert "Planning is stopped" in html
        assert ", by zoe: the provider moves." in html

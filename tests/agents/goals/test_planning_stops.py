"""Stopped planning: nobody claims a goal until it is resumed."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from agents.cycle.running import reconcile_goals
from agents.goals.claims import claim_goal, resume_planning, stop_planning, stops_of
from agents.goals.models import Goal
from diagnostics import clock
from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.store.models import OutboxMessage
from tests.console import make_goal
from tests.plans.driving import let_marks_pass

pytestmark = pytest.mark.django_db


@pytest.fixture
def by() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def projects() -> tuple[Project, Project]:
    return (
        Project.objects.create(slug="one", name="One"),
        Project.objects.create(slug="two", name="Two"),
    )


def test_goals_of_a_stopped_project_stay_queued(
    projects: tuple[Project, Project], by: User
) -> None:
    mine, others = (make_goal(project, project.slug) for project in projects)
    assert stop_planning(projects[0], by, "the provider is being changed")
    assert claim_goal(mine.pk) is None
    assert claim_goal(others.pk) is not None
    mine.refresh_from_db()
    assert mine.status == Goal.Status.QUEUED


def test_planning_stopped_everywhere_holds_every_project(
    projects: tuple[Project, Project], by: User
) -> None:
    goals = [make_goal(project, project.slug) for project in projects]
    assert stop_planning(None, by)
    assert [claim_goal(goal.pk) for goal in goals] == [None, None]
    assert resume_planning(None, by)
    assert all(claim_goal(goal.pk) for goal in goals)


def test_it_is_stopped_once_and_resumed_once(projects: tuple[Project, Project], by: User) -> None:
    assert stop_planning(None, by)
    assert not stop_planning(None, by)
    assert len(stops_of(projects[0])) == 1
    assert resume_planning(None, by)
    assert not resume_planning(None, by)
    told = AuditEntry.objects.order_by("number").values_list("action", flat=True)
    assert list(told) == ["planning.stopped", "planning.resumed"]


def test_goals_are_queued_again_only_once_planning_is_resumed(
    projects: tuple[Project, Project], by: User
) -> None:
    goals = [make_goal(project, project.slug) for project in projects]
    Goal.objects.update(lease_until=clock.now() - timedelta(hours=1))
    let_marks_pass("plan")
    stop_planning(projects[0], by)
    assert reconcile_goals() == 1
    assert OutboxMessage.objects.get().kwargs == {"goal_id": str(goals[1].pk)}
    resume_planning(projects[0], by)
    assert reconcile_goals() == 0
    let_marks_pass("plan")
    assert reconcile_goals() == 1

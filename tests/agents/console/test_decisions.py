"""Completion decisions on the page of a goal."""

import pytest

from agents.goals.models import Goal
from diagnostics.accounts.models import Project
from plans.models.check import CompletionCheck
from tests.agents.console.conftest import Read
from tests.console import make_goal, make_meta, make_run


@pytest.fixture
def checked(project: Project) -> Goal:
    goal = make_goal(project, status="failed", outcome="ok_first")
    spec = {"kind": "command", "command": "review"}
    Goal.objects.filter(pk=goal.pk).update(
        completion_check=spec, language_model=None, plan_source="given"
    )
    make_run(goal, [], make_meta("COMPLETED", 1, 0, 0))
    return goal


def add_check(goal: Goal, iteration: int, **columns: object) -> None:
    CompletionCheck.objects.create(
        **{
            "project_id": goal.project_id,
            "owner": f"goal:{goal.pk}",
            "correlation_id": goal.correlation_id,
            "cycle": iteration,
            "iteration": iteration,
            "check_id": f"check-{iteration}",
            "kind": "command",
            "checker": "review",
            "state": "decided",
            **columns,
        }
    )


def test_s3_15_reasons_fingerprints_source_and_check_id_are_shown(
    checked: Goal, read: Read
) -> None:
    add_check(
        checked,
        1,
        decision="incomplete",
        source="file-json",
        check_id_match=True,
        reasons=["add <b>tests</b>"],
        fingerprints=["missing-tests"],
    )
    html = read("/runs/run-1/")

    assert "Completion decisions" in html
    for text in ("file-json", "check-1", "id matches", "missing-tests", "review"):
        assert text in html
    assert "add &lt;b&gt;tests&lt;/b&gt;" in html


def test_s3_24_the_count_of_undecidable_checks_is_shown(checked: Goal, read: Read) -> None:
    add_check(checked, 1, decision="undecidable", undecidable_in_a_row=1)
    add_check(checked, 2, decision="undecidable", undecidable_in_a_row=2, reason="truncated")
    html = read("/runs/run-1/")

    assert "2 in a row" in html
    assert "truncated" in html


def test_a_goal_that_failed_by_its_check_does_not_say_completed(checked: Goal, read: Read) -> None:
    add_check(checked, 1, state="failed", reason="checker_failed: no disk")
    html = read("/runs/run-1/")

    assert "checker failed" in html
    assert "no model" in html


def test_a_goal_without_a_check_shows_none(project: Project, read: Read) -> None:
    make_goal(project)

    assert "Completion decisions" not in read("/runs/run-1/")

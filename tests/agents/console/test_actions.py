"""Actions on a goal's page, and their undo."""

import pytest
from django.test import Client

from agents.actions.applying import apply_actions
from agents.actions.models import Entry
from agents.goals.models import Goal
from agents.goals.records import goal_path
from diagnostics.accounts.models import Project
from failsoft.actions import decode_tool_calls
from failsoft.actions.entries import ENTRIES
from tests.agents.conftest import Planner
from tests.agents.console.conftest import Read
from tests.console import Role, make_goal, make_member
from tests.failsoft.actions.calls import call, complete, create, update


def acted(project: Project, *calls: object) -> Goal:
    """A goal that has applied these calls."""
    goal = make_goal(
        project, status="completed", outcome="ok_first", mode="actions", toolset="entries"
    )
    apply_actions(goal, decode_tool_calls(list(calls), ENTRIES))
    return goal


@pytest.fixture
def partial(project: Project) -> Goal:
    """A goal of which one entry was created, and two things failed."""
    return acted(
        project,
        create({"content": "Buy <b>milk</b>", "category": "todo", "priority": 2}),
        update({"status": "frozen"}),
        complete("fff"),
    )


def test_the_page_tells_what_was_applied_and_what_failed_in_which_layer(
    read: Read, partial: Goal
) -> None:
    page = read(goal_path(partial))
    assert "; created 1 (2 couldn&#x27;t be processed)</h1>" in page
    assert "Buy &lt;b&gt;milk&lt;/b&gt;" in page
    assert "priority: 2" in page
    assert "updates[0].fields.status" in page
    assert "entry fff not found" in page
    assert 'class="verdict is-warn' in page


def test_a_call_without_a_name_is_shown_too(read: Read, project: Project) -> None:
    page = read(goal_path(acted(project, None, call("x", "{}"))))
    assert "no tool name" in page


def test_before_anything_is_applied_the_page_has_no_actions(read: Read, project: Project) -> None:
    goal = make_goal(project, status="running", mode="actions", toolset="entries")
    assert 'id="actions"' not in read(goal_path(goal))


def test_undo_takes_back_and_the_page_says_so(client: Client, read: Read, partial: Goal) -> None:
    assert "Undo" in read(goal_path(partial))
    answer = client.post(f"/goals/{partial.pk}/undo/")
    assert answer["Location"] == goal_path(partial)
    assert not Entry.objects.exists()
    page = read(goal_path(partial))
    assert "Undo" not in page
    assert "undone" in page


def test_a_second_undo_is_answered_in_words(client: Client, partial: Goal) -> None:
    client.post(f"/goals/{partial.pk}/undo/")
    page = client.post(f"/goals/{partial.pk}/undo/", follow=True).content.decode()
    assert "Not undone: the actions of this goal were undone before." in page


def test_what_was_changed_again_is_named_as_not_undone(
    client: Client, read: Read, partial: Goal
) -> None:
    Entry.objects.update(revision=7)
    client.post(f"/goals/{partial.pk}/undo/")
    assert "edited since, kept" in read(goal_path(partial))


def test_a_viewer_may_not_undo(client: Client, project: Project, partial: Goal) -> None:
    client.force_login(make_member(project, "eve", Role.VIEWER))
    assert client.post(f"/goals/{partial.pk}/undo/").status_code == 403
    assert Entry.objects.exists()


def test_a_foreign_goal_is_not_found(client: Client) -> None:
    foreign = acted(Project.objects.create(slug="x", name="X"), create({"content": "a"}))
    assert client.post(f"/goals/{foreign.pk}/undo/").status_code == 404


def test_a_goal_of_actions_is_submitted_by_the_form(client: Client, planner: Planner) -> None:
    sent = {
        "goal": "Buy milk",
        "language_model": planner.language_model.pk,
        "mode": "actions",
        "max_attempts": 2,
        "max_iterations": 3,
        "on_exhausted": "abort",
        "constraints": "",
    }
    client.post("/goals/new/", sent)
    goal = Goal.objects.get()
    assert (goal.mode, goal.toolset) == ("actions", "entries")

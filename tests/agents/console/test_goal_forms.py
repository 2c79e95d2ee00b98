"""Submitting, answering, cancelling and finding goals in the console."""

import re
from typing import Any

import pytest
from django.test import Client

from agents.goals.models import Goal
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.store.models import OutboxMessage
from tests.agents.conftest import Planner
from tests.agents.console.conftest import Read
from tests.console import Role, make_goal, make_member, make_model, post_runs

ASK = '{"kind": "ask_user", "question": "Which branch?"}'

CHECK = {"check_kind": "tool", "check_tool": "echo"}


def filled(project: Project, **changes: Any) -> dict[str, Any]:
    """Give the form as a person would send it."""
    form = {
        "goal": "Say hello",
        "language_model": make_model(project).pk,
        "mode": "plan",
        "max_attempts": 3,
        "send_error_feedback": "on",
        "constraints": "",
        "max_iterations": 3,
    }
    return {**form, **changes}


def test_goal_is_queued_with_what_was_filled_in(project: Project, client: Client) -> None:
    sent = filled(project, constraints="use echo\n? be brief\n\n")
    answer = client.post("/goals/new/", sent)
    goal = Goal.objects.get()
    assert answer["Location"] == f"/runs/{goal.correlation_id}/"
    assert (goal.status, goal.source) == ("queued", "console")
    assert goal.retry["max_retries"] == 3
    assert goal.retry["simplify_on_final_attempt"] is False
    assert [(c["text"], c["optional"]) for c in goal.constraints] == [
        ("use echo", False),
        ("be brief", True),
    ]
    assert OutboxMessage.objects.filter(task="agents.tasks.run_goal").count() == 1


def test_a_form_that_is_sent_twice_is_one_goal(project: Project, client: Client) -> None:
    def opened() -> dict[str, Any]:
        html = client.get("/goals/new/").content.decode()
        return filled(project) | dict(re.findall(r'name="(page)" value="([^"]+)"', html))

    sent = opened()
    first, again = (client.post("/goals/new/", sent)["Location"] for _ in range(2))
    assert first == again
    # Changed after going back to it, or sent from a page opened anew, it is another one.
    client.post("/goals/new/", {**sent, "goal": "Say goodbye"})
    client.post("/goals/new/", opened())
    assert Goal.objects.count() == 3


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({}, None),
        # What belongs to another kind is passed over, however wrong it is.
        ({"check_tool": "echo", "check_args": "{", "check_file": "/x"}, None),
        (
            {**CHECK, "check_args": '{"text": "${check_id}"}', "on_exhausted": "continue"},
            {
                "kind": "tool",
                "tool": "echo",
                "args": {"text": "${check_id}"},
                "on_exhausted": "continue",
            },
        ),
        (
            {"check_kind": "command", "check_command": "tests", "check_file": "a/b.json"},
            {
                "kind": "command",
                "command": "tests",
                "decision_file": "a/b.json",
                "on_exhausted": "abort",
            },
        ),
        (
            {"check_kind": "model", "check_instructions": "Look at the tests."},
            {"kind": "model", "instructions": "Look at the tests.", "on_exhausted": "abort"},
        ),
    ],
)
def test_s3_23_the_form_says_who_checks_and_how_often(
    project: Project,
    client: Client,
    settings: Any,
    changes: dict[str, Any],
    check: dict[str, Any] | None,
) -> None:
    settings.FAILSOFT_CHECK_COMMANDS = {"tests": ["true"]}
    answer = client.post("/goals/new/", filled(project, max_iterations=7, **changes))
    goal = Goal.objects.get()
    assert answer.status_code == 302
    assert (goal.completion_check, goal.max_iterations) == (check, 7)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"goal": ""}, "goal"),
        ({"goal": "   "}, "goal"),
        ({"goal": "x" * (32 * 1024 + 1)}, "goal"),
        ({"language_model": 999_999}, "language_model"),
        ({"mode": "dance"}, "mode"),
        ({"max_attempts": 6}, "max_attempts"),
        ({"constraints": "\n".join("c" * 3 for _ in range(21))}, "constraints"),
        ({"max_iterations": ""}, "max_iterations"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"max_iterations": 21}, "max_iterations"),
        ({"check_kind": "oracle"}, "check_kind"),
        # No command is allowed in this installation.
        ({"check_kind": "command"}, "check_kind"),
        ({"check_kind": "model", "mode": "actions"}, "check_kind"),
        ({"check_kind": "tool"}, "check_tool"),
        ({"check_kind": "tool", "check_tool": "hammer"}, "check_tool"),
        (CHECK | {"check_args": "{"}, "check_args"),
        (CHECK | {"check_args": "[]"}, "check_args"),
        (CHECK | {"check_args": '{"a": 1, "a": 2}'}, "check_args"),
        (CHECK | {"check_file": "../decision"}, "check_file"),
        (CHECK | {"check_file": "/etc/passwd"}, "check_file"),
        ({"check_kind": "model", "check_instructions": "i" * 8_001}, "check_instructions"),
    ],
)
def test_faults_stand_beside_their_field_and_nothing_is_queued(
    project: Project, client: Client, changes: dict[str, Any], field: str
) -> None:
    html = client.post("/goals/new/", filled(project, **changes)).content.decode()
    assert f'id="id_{field}_error"' in html
    assert not Goal.objects.exists()


def test_models_of_other_projects_are_not_offered(
    project: Project, client: Client, read: Read
) -> None:
    foreign = make_model(Project.objects.create(slug="other", name="O"), "foreign-1")
    assert "foreign-1" not in read("/goals/new/")
    client.post("/goals/new/", filled(project, language_model=foreign.pk))
    assert not Goal.objects.exists()


def test_project_without_a_model_says_so(read: Read) -> None:
    assert "No model is enabled in this project" in read("/goals/new/")


@pytest.mark.slow
def test_waiting_goal_shows_its_question_and_goes_on_with_the_answer(
    planner: Planner, client: Client, read: Read
) -> None:
    record = planner.run(ASK)
    path = f"/runs/{record['correlation_id']}/"
    assert "Which branch?" in read(path)
    goal = Goal.objects.get()
    sent = {"kind": "text", "text": "main", "cycle": str(goal.cycle)}
    assert client.post(f"/goals/{goal.pk}/answer/", sent)["Location"] == path
    planner.will_say('{"kind": "finish", "answer": "done"}')
    assert planner.finish(goal)["status"] == "completed"


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"kind": "text", "text": ""}, "text"),
        ({"kind": "secret", "secret": ""}, "secret"),
        ({"kind": "secret", "secret": "the password itself"}, "secret"),
    ],
)
def test_answer_that_says_nothing_is_refused_at_its_field(
    planner: Planner, client: Client, sent: dict[str, str], field: str
) -> None:
    planner.run(ASK)
    goal = Goal.objects.get()
    html = client.post(f"/goals/{goal.pk}/answer/", sent).content.decode()
    assert f'id="id_{field}_error"' in html
    assert Goal.objects.get().status == "waiting_user"


def test_answer_that_comes_too_late_changes_nothing(project: Project, client: Client) -> None:
    goal = make_goal(project, status="completed")
    sent = {"kind": "confirmed"}
    html = client.post(f"/goals/{goal.pk}/answer/", sent, follow=True).content.decode()
    assert "no longer waits for this answer" in html


def test_an_answer_to_an_earlier_question_is_no_answer_to_the_next(
    project: Project, client: Client, read: Read
) -> None:
    goal = make_goal(project, status="waiting_user", next_user_question="Delete the copy?")
    sent = {"kind": "confirmed", "cycle": str(goal.cycle)}
    assert f'name="cycle" value="{goal.cycle}"' in read(f"/runs/{goal.correlation_id}/")
    # Somebody else answered, and the next cycle asks something else.
    goal.cycle, goal.next_user_question = goal.cycle + 1, "Delete the original?"
    goal.save()
    html = client.post(f"/goals/{goal.pk}/answer/", sent, follow=True).content.decode()
    assert "no longer waits for this answer" in html
    assert Goal.objects.get().status == "waiting_user"


def test_queued_goal_is_cancelled_at_once(project: Project, client: Client) -> None:
    goal = make_goal(project)
    html = client.post(f"/goals/{goal.pk}/cancel/", follow=True).content.decode()
    assert Goal.objects.get().status == "cancelled"
    assert "Cancelled after 0 attempts" in html


def test_ended_goal_cannot_be_cancelled(project: Project, client: Client) -> None:
    goal = make_goal(project, status="completed", outcome="ok_first")
    html = client.post(f"/goals/{goal.pk}/cancel/", follow=True).content.decode()
    assert "had already ended" in html


@pytest.mark.parametrize("action", ["cancel", "answer"])
def test_foreign_goals_are_not_touched(client: Client, action: str) -> None:
    foreign = make_goal(Project.objects.create(slug="other", name="Other"))
    answer = client.post(f"/goals/{foreign.pk}/{action}/", {"kind": "confirmed"})
    assert answer.status_code == 404
    assert Goal.objects.get().status == "queued"


@pytest.mark.parametrize("action", ["cancel", "answer"])
def test_actions_are_posts_only(project: Project, client: Client, action: str) -> None:
    goal = make_goal(project)
    assert client.get(f"/goals/{goal.pk}/{action}/").status_code == 405


def test_viewer_looks_but_does_not_act(project: Project) -> None:
    client = Client()
    client.force_login(make_member(project, "eve", Role.VIEWER))
    goal = make_goal(project, status="running")
    assert b"/cancel/" not in client.get("/runs/run-1/").content
    answer = client.post(f"/goals/{goal.pk}/cancel/")
    assert answer.status_code == 403
    assert b"Your role is read-only here" in answer.content
    assert client.get("/goals/new/").status_code == 403


def test_posts_without_a_token_are_refused(project: Project) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_member(project))
    assert client.post("/goals/new/", filled(project)).status_code == 403
    assert not Goal.objects.exists()


def test_x_1_reference_leads_to_the_goal(project: Project, client: Client) -> None:
    make_goal(project, "run-8842")
    answer = client.get("/find/", {"reference": " run-8842 "})
    assert answer["Location"] == "/runs/run-8842/"


def test_reference_of_an_outside_agent_leads_to_its_run(project: Project, client: Client) -> None:
    post_runs(project, 0, 1, clock.now(), correlation_id="theirs")
    answer = client.get("/find/", {"reference": "theirs"}, follow=True)
    assert answer.redirect_chain[-1][0].startswith("/runs/theirs/")
    assert "graph.next_step.degraded" in answer.content.decode()


@pytest.mark.parametrize("reference", ["nobody", "", "\0", "x" * 999])
def test_unknown_reference_leads_to_the_search(client: Client, reference: str) -> None:
    answer = client.get("/find/", {"reference": reference}, follow=True)
    assert answer.redirect_chain[-1][0].startswith("/search/")
    assert answer.status_code == 200


def test_reference_of_another_project_is_unknown(client: Client) -> None:
    other = Project.objects.create(slug="other", name="Other")
    make_goal(other, "foreign")
    post_runs(other, 1, 1, clock.now(), correlation_id="theirs")
    for reference in ("foreign", "theirs"):
        answer = client.get("/find/", {"reference": reference}, follow=True)
        assert "No run with ID" in answer.content.decode()

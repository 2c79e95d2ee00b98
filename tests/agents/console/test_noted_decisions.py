"""What people and keys decide about goals and plan runs is in the audit log."""

from typing import Any

import pytest
from django.test import Client

from agents.goals.models import Goal
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.accounts.projects import issue_key
from plans.runs.submission import submit_run
from tests.console import make_goal

pytestmark = pytest.mark.django_db
PLAN = {"steps": [{"step_id": "step_1", "tool": {"name": "echo", "args": {}}}]}


def noted(project: Project) -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.filter(chain=project.pk).order_by("number")
    return list(rows.values_list("actor", "action", "target"))


def test_decisions_of_a_person_are_noted_once_they_are_made(
    client: Client, project: Project
) -> None:
    goal = make_goal(project, status=Goal.Status.WAITING_USER, next_user_question="Where?")
    for path in ("answer", "answer", "cancel", "undo"):
        client.post(f"/goals/{goal.pk}/{path}/", {"kind": "text", "text": "Rome"})
    run = submit_run(project.pk, PLAN, None)
    for path in ("rerun", "resolve", "cancel"):
        client.post(f"/plan-runs/{run.pk}/{path}/", {"verdict": "done", "position": "0"})
    assert noted(project) == [
        ("ann", "goal.answered", "run-1"),
        ("ann", "goal.cancelled", "run-1"),
        ("ann", "plan_run.cancelled", str(run.pk)),
    ]


def test_decisions_of_a_key_are_noted_once_they_are_made(project: Project) -> None:
    key = issue_key(project, "k", [Scope.ADMIN])
    client: Any = Client(headers={"Authorization": f"Bearer {key.text}"})
    make_goal(project, status=Goal.Status.WAITING_USER, next_user_question="Where?")
    for path in ("answer", "answer", "cancel", "undo"):
        client.post(f"/api/v1/goals/run-1/{path}", {"text": "Rome"}, "application/json")
    by = f"key k ({key.row.key_id})"
    expected = [(by, "goal.answered", "run-1"), (by, "goal.cancelled", "run-1")]
    assert noted(project) == expected

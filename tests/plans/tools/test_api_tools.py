"""The REST addresses of tools, and of what a person decides about steps."""

import json
from typing import Any

import pytest
from django.test import Client

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.accounts.projects import issue_key
from plans.models.run import Run, RunStep
from plans.models.tool import McpServer
from plans.runs.running import execute_run
from plans.runs.submission import submit_run

pytestmark = pytest.mark.django_db


class Asking:
    """A client with a key."""

    def __init__(self, project: Project, scope: str) -> None:
        key = issue_key(project, scope, [Scope(scope)]).text
        self.client = Client(headers={"Authorization": f"Bearer {key}"})

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        raw = b"" if body is None else json.dumps(body).encode()
        return self.client.generic(method, path, raw, "application/json")


@pytest.fixture
def ask(project: Project) -> Asking:
    return Asking(project, "admin")


@pytest.fixture
def ended(project: Project) -> Run:
    """A run whose second step nobody knows the outcome of."""
    steps = [
        {"step_id": "step_1", "tool": {"name": "echo", "args": {"n": 1}}},
        {"step_id": "step_2", "dependencies": ["step_1"], "tool": "echo"},
        {"step_id": "step_3", "dependencies": ["step_2"], "tool": "echo"},
    ]
    run = submit_run(project.pk, {"steps": steps}, "mine")
    execute_run(run.pk)
    behind = RunStep.objects.filter(run=run)
    behind.filter(position=1).update(ok=False, reason="unknown_outcome", output=None)
    behind.filter(position=2).update(ok=False, skipped=True, reason="x", output=None)
    return run


def test_tools_are_published_with_schema_and_flags(ask: Asking, settings: Any) -> None:
    settings.FAILSOFT_MCP_SERVERS = {"shop": {"command": "x"}, "new": {"url": "http://x"}}
    McpServer.objects.create(name="shop", transport="stdio", last_error="no licence")
    body = ask("GET", "/api/v1/tools").json()
    sleep = next(item for item in body["items"] if item["name"] == "sleep")
    assert sleep["schema"]["properties"]["seconds"]["type"] == "number"
    assert (sleep["source"], sleep["allowed"]) == ("python", True)
    states = {server["name"]: server["state"] for server in body["servers"]}
    assert states == {"shop": "failing", "new": "not_asked"}


def test_a_tool_is_denied_and_allowed_again(ask: Asking, project: Project) -> None:
    assert ask("PUT", "/api/v1/tools/echo", {"allowed": False}).json()["allowed"] is False
    assert ask("GET", "/api/v1/tools/echo").json()["allowed"] is False
    assert ask("PUT", "/api/v1/tools/echo", {"allowed": True}).json()["allowed"] is True
    assert ask("PUT", "/api/v1/tools/echo", {}).status_code == 400
    assert ask("PUT", "/api/v1/tools/nobody", {"allowed": True}).status_code == 404
    reader = Asking(project, "read")
    assert reader("GET", "/api/v1/tools/echo").status_code == 200
    assert reader("PUT", "/api/v1/tools/echo", {"allowed": False}).status_code == 403


def test_what_a_project_may_call_is_an_entry_of_the_audit_log(ask: Asking) -> None:
    ask("PUT", "/api/v1/tools/echo", {"allowed": False})
    ask("PUT", "/api/v1/tools/echo", {"allowed": True})
    entries = list(AuditEntry.objects.order_by("number"))
    changes = [(entry.action, entry.target) for entry in entries]
    assert changes == [("tool.denied", "echo"), ("tool.allowed", "echo")]
    assert all(entry.actor.startswith("key admin (") for entry in entries)


def test_an_unknown_outcome_is_decided_once(ask: Asking, ended: Run) -> None:
    url = f"/api/v1/plans/runs/{ended.pk}/steps/1/resolve"
    assert ask("POST", url, {"verdict": "maybe"}).status_code == 400
    assert ask("POST", url, {"verdict": "done"}).status_code == 202
    execute_run(ended.pk)
    ended.refresh_from_db()
    assert ended.task_status == "COMPLETED"
    assert RunStep.objects.get(run=ended, position=1).resolved_by.startswith("key ")
    again = ask("POST", url, {"verdict": "done"})
    assert (again.status_code, again.json()["code"]) == (409, "step_decided")
    nowhere = url.replace("steps/1/", "steps/7/")
    assert ask("POST", nowhere, {"verdict": "done"}).status_code == 404


def test_a_run_is_repeated_from_one_step_on(ask: Asking, ended: Run) -> None:
    url = f"/api/v1/plans/runs/{ended.pk}/rerun"
    rerun = ask("POST", url, {"from_position": 1, "by": "ann"}).json()
    execute_run(rerun["run_id"])
    run = Run.objects.get(pk=rerun["run_id"])
    assert (run.rerun_of, run.rerun_from, run.requested_by) == (ended, 1, "ann")
    assert run.task_status == "COMPLETED"
    assert ask("POST", url, {"from_position": 9}).status_code == 404
    assert ask("POST", url, {"from_position": -1}).status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "tools/echo", {"allowed": False}),
        ("POST", "plans/runs/{run}/rerun", {"from_position": 1}),
        ("POST", "plans/runs/{run}/steps/1/resolve", {"verdict": "resume"}),
    ],
)
def test_an_unknown_field_is_refused_by_name(
    ask: Asking, ended: Run, method: str, path: str, body: dict[str, Any]
) -> None:
    url = f"/api/v1/{path.format(run=ended.pk)}"
    answer = ask(method, url, {**body, "new_keys": True})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_parameter")
    assert "new_keys" in answer.json()["detail"]
    assert ask(method, url, []).status_code == 400


def test_s20_runs_of_others_are_not_found(ended: Run) -> None:
    other = Project.objects.create(slug="other", name="Other")
    ask = Asking(other, "admin")
    path = f"/api/v1/plans/runs/{ended.pk}"
    assert ask("POST", f"{path}/rerun", {}).status_code == 404
    verdict = {"verdict": "done"}
    assert ask("POST", f"{path}/steps/1/resolve", verdict).status_code == 404

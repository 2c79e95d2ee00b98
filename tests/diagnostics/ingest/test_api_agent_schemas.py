"""Agents register the schemas of their nodes; versions are kept and never change."""

import json
from random import Random
from typing import Any

import pytest
from django.test import Client

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import forget_all
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest import agent_schemas
from diagnostics.ingest.models import AgentSchema
from tests.failsoft.redaction.made_up import make

pytestmark = pytest.mark.django_db
PLAN: dict[str, Any] = {"title": "Plan", "type": "object", "required": ["steps"]}
OTHER: dict[str, Any] = {"type": "array"}


class Caller:
    """Asks the API with one key."""

    def __init__(self, project: Project, *scopes: Scope) -> None:
        self.headers = {"Authorization": f"Bearer {issue_key(project, 't', scopes).text}"}

    def put(self, body: object, node: str = "planner") -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        url, kind = f"/api/v1/schemas/{node}", "application/json"
        return Client().put(url, raw, content_type=kind, headers=self.headers)

    def get(self, path: str = "") -> Any:
        return Client().get(f"/api/v1/schemas{path}", headers=self.headers)

    def delete(self, node: str = "planner") -> Any:
        return Client().delete(f"/api/v1/schemas/{node}", headers=self.headers)


@pytest.fixture
def project() -> Project:
    forget_all()
    return Project.objects.create(slug="p", name="P")


@pytest.fixture
def caller(project: Project) -> Caller:
    return Caller(project, Scope.ADMIN)


def test_a_schema_is_registered_shown_and_retired(caller: Caller) -> None:
    answer = caller.put({"json_schema": PLAN, "version": "3"})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["node"], body["version"]) == ("planner", "3")
    assert body["json_schema"] == PLAN
    assert body["ignored"] == []
    (item,) = caller.get().json()["items"]
    assert item["node"] == "planner"
    shown = caller.get("/planner").json()
    assert [version["version"] for version in shown["versions"]] == ["3"]
    assert caller.delete().status_code == 204
    assert caller.delete().status_code == 404
    assert caller.get("/planner").status_code == 404
    assert caller.get().json()["items"] == []


def test_versions_are_kept_and_one_is_current(caller: Caller) -> None:
    caller.put({"json_schema": PLAN, "version": "3"})
    caller.put({"json_schema": OTHER, "version": "4"})
    shown = caller.get("/planner").json()
    assert shown["version"] == "4"
    current = [version["current_since"] is None for version in shown["versions"]]
    assert current == [False, True]
    # Going back is registering the old one again.
    caller.put({"json_schema": PLAN, "version": "3"})
    assert caller.get("/planner").json()["version"] == "3"
    assert AgentSchema.objects.count() == 2


def test_the_same_again_changes_nothing(caller: Caller) -> None:
    first = caller.put({"json_schema": PLAN, "version": "3"}).json()
    assert caller.put({"json_schema": PLAN, "version": "3"}).json() == first
    assert caller.put({"json_schema": PLAN}).json() == first


def test_a_version_never_changes(caller: Caller) -> None:
    caller.put({"json_schema": PLAN, "version": "3"})
    answer = caller.put({"json_schema": OTHER, "version": "3"})
    assert answer.status_code == 409
    assert "new version" in answer.json()["detail"]
    assert caller.get("/planner").json()["json_schema"] == PLAN


def test_a_number_and_a_boolean_are_two_schemas(caller: Caller) -> None:
    caller.put({"json_schema": {"const": 1}})
    assert caller.put({"json_schema": {"const": True}}).json()["version"] == "2"
    taken = caller.put({"json_schema": {"const": True}, "version": "1"})
    assert taken.status_code == 409
    assert caller.put({"json_schema": {"const": 1.0}, "version": "1"}).status_code == 200


def test_versions_are_numbered_when_they_are_not_named(caller: Caller) -> None:
    assert caller.put({"json_schema": PLAN}).json()["version"] == "1"
    caller.put({"json_schema": OTHER, "version": "7"})
    assert caller.put({"json_schema": True}).json()["version"] == "8"


@pytest.mark.parametrize(
    ("body", "status", "path"),
    [
        (b"{", 400, None),
        (b"[]", 422, None),
        ({}, 422, "/json_schema"),
        ({"json_schema": 7}, 422, "/json_schema"),
        ({"json_schema": PLAN, "version": ""}, 422, "/version"),
        ({"json_schema": PLAN, "verison": "3"}, 422, "/verison"),
        ({"json_schema": {"title": "a\0"}}, 422, "/json_schema"),
        ({"json_schema": PLAN, "version": "a\0"}, 422, "/version"),
        ({"json_schema": {"type": "text"}}, 422, "/json_schema/type"),
        ({"json_schema": {"pattern": "(?=a)"}}, 422, "/json_schema/pattern"),
        ({"json_schema": {"$ref": "https://x.example"}}, 422, "/json_schema/$ref"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    caller: Caller, body: object, status: int, path: str | None
) -> None:
    answer = caller.put(body)
    assert answer.status_code == status
    if path is not None:
        assert answer.json()["errors"][0]["path"] == path
    assert not AgentSchema.objects.exists()


def test_a_schema_that_holds_a_secret_is_refused(caller: Caller) -> None:
    secret, _ = make("sk-ant-api03-{alnum:93}AA", Random(7))
    for schema in ({"examples": [{"key": secret}]}, {"properties": {secret: True}}):
        answer = caller.put({"json_schema": schema})
        assert answer.status_code == 422
        assert secret not in answer.text
    # A property may be called what it likes.
    kept = {"properties": {"password": {"type": "string"}}}
    assert caller.put({"json_schema": kept}).status_code == 200


@pytest.mark.parametrize("node", ["Planner", "1st", "a" * 64, "a.b", "%00"])
def test_a_node_needs_a_name_that_events_can_have(caller: Caller, node: str) -> None:
    assert caller.put({"json_schema": PLAN}, node).status_code == 404


@pytest.mark.parametrize(
    ("scope", "statuses"),
    [
        (Scope.INGEST, (200, 403, 403)),
        (Scope.READ, (403, 404, 403)),
        (Scope.ADMIN, (200, 200, 204)),
    ],
)
def test_agents_register_readers_look_and_admins_retire(
    project: Project, scope: Scope, statuses: tuple[int, int, int]
) -> None:
    caller = Caller(project, scope)
    asked = (caller.put({"json_schema": PLAN}), caller.get("/planner"), caller.delete())
    assert tuple(answer.status_code for answer in asked) == statuses


def test_projects_do_not_see_each_other(caller: Caller) -> None:
    caller.put({"json_schema": PLAN})
    stranger = Caller(Project.objects.create(slug="o", name="O"), Scope.ADMIN)
    assert stranger.get("/planner").status_code == 404
    assert stranger.delete().status_code == 404
    assert stranger.get().json()["items"] == []


def test_kept_versions_and_nodes_are_bounded(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_schemas, "MAX_VERSIONS", 3)
    monkeypatch.setattr(agent_schemas, "MAX_NODES", 1)
    for number in range(5):
        caller.put({"json_schema": {"const": number}})
    versions = caller.get("/planner").json()["versions"]
    assert [version["version"] for version in versions] == ["5", "4", "3"]
    assert caller.put({"json_schema": PLAN}, "other").status_code == 409

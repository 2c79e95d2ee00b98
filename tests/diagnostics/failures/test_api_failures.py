"""GET /api/v1/failures: kinds of failure, narrowed, paged, one of them."""

import json
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.recording import record
from diagnostics.store import aggregation
from failsoft.events import PostedEvent as WireEvent
from tests.console import post_and_fold
from tests.diagnostics.builders import wire_event

pytestmark = pytest.mark.django_db
KINDS = ("truncated", "not_json", "refusal")


@pytest.fixture
def project() -> Project:
    project = Project.objects.create(slug="p", name="P")
    at = clock.now().isoformat()
    events = [
        wire_event(occurred_at=at, parse_error_type=kind, model=model)
        for kind in KINDS
        for model in ("a", "b")
    ]
    post_and_fold(project, *events)
    return project


@pytest.fixture
def client(project: Project) -> Client:
    key = issue_key(project, "k", [Scope.READ]).text
    return Client(headers={"Authorization": f"Bearer {key}"})


def listed(client: Client, **asked: str) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/failures", asked)
    assert answer.status_code == 200, answer.content
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_a_kind_of_failure_is_one_group_whatever_the_model(client: Client) -> None:
    items = listed(client)
    assert {item["error_type"] for item in items} == set(KINDS)
    assert all(item["seen"] == 2 and len(item["models"]) == 2 for item in items)
    one = client.get(f"/api/v1/failures/{items[0]['id']}").json()
    assert one.pop("covers").keys() == {"since", "until"}
    assert one == items[0]


def test_failures_are_narrowed(client: Client) -> None:
    assert [item["error_type"] for item in listed(client, kind="refusal")] == ["refusal"]
    assert [item["seen"] for item in listed(client, model="a")] == [1, 1, 1]
    assert [item["seen"] for item in listed(client, q="-model:a")] == [1, 1, 1]
    assert listed(client, state="muted") == []
    assert [item["seen"] for item in listed(client, attempt="1", model="a")] == [1] * 3
    assert listed(client, q="nowhere") == []
    for asked in ({"attempt": "x"}, {"outcome": "x"}, {"state": "x"}, {"cursor": "x"}):
        assert client.get("/api/v1/failures", asked).status_code == 400


def test_failures_are_paged_and_streamed(client: Client) -> None:
    first = client.get("/api/v1/failures", {"limit": "2"}).json()
    rest = listed(client, cursor=first["next"])
    assert len({item["id"] for item in first["items"] + rest}) == 3
    headers = {"Accept": "application/x-ndjson"}
    lines = client.get("/api/v1/failures", headers=headers).getvalue().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [item["id"] for item in listed(client)]


def test_a_group_that_is_none_or_anothers_is_not_found(client: Client) -> None:
    other = Project.objects.create(slug="o", name="O")
    record(other.pk, [WireEvent.model_validate(wire_event())])
    aggregation.fold()
    theirs = other.failure_groups.get()
    for group_id in (theirs.pk, 999_999):
        assert client.get(f"/api/v1/failures/{group_id}").status_code == 404

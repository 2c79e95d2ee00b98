"""Pre-counted runs and deploys: each told once counts once."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.models import Deploy
from diagnostics.store.models import Outcome

pytestmark = pytest.mark.django_db
Post = Callable[..., Any]


@pytest.fixture
def key(project: Project) -> str:
    return issue_key(project, "k", [Scope.INGEST, Scope.READ]).text


@pytest.fixture
def post(key: str) -> Post:
    def send(body: object, url: str = "/api/v1/outcomes") -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {key}"}
        return Client().post(url, raw, content_type="application/json", headers=headers)

    return send


def outcome(**changes: object) -> dict[str, Any]:
    told: dict[str, Any] = {
        "minute": clock.now().replace(second=0, microsecond=0).isoformat(),
        "sequence": 0,
        "source": "support-bot",
        "node": "next_step",
        "provider": "anthropic",
        "model": "claude-haiku-4",
        "ok_first": 40,
        "repaired": 3,
        "degraded": 1,
    }
    return {key: value for key, value in (told | changes).items() if value is not None}


def counted() -> tuple[int, int, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(runs), 0), coalesce(sum(degraded), 0),"
            " coalesce(sum(ok_first), 0) FROM diagnostics_rollup_delta"
        )
        row: tuple[int, int, int] = cursor.fetchone()
    return row


def test_outcomes_count_once_however_often_they_are_told(post: Post) -> None:
    first, second = outcome(), outcome(sequence=1, model=None, stubbed=2)
    assert post([first, second, first]).json()["accepted"] == 2
    assert counted() == (44 + 46, 1 + 3, 80)
    again = post([first, second]).json()
    assert (again["accepted"], again["duplicates"]) == (0, 2)
    assert counted()[0] == 90
    assert Outcome.objects.count() == 2


def test_other_counts_under_the_same_place_are_a_conflict(post: Post) -> None:
    told = outcome()
    post([told])
    answer = post([{**told, "ok_first": 41}])
    assert answer.status_code == 207
    (result,) = answer.json()["results"]
    assert (result["status"], result["errors"][0]["code"]) == ("conflict", "conflict")
    assert counted()[0] == 44


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"minute": "2026-11-21T14:32:07Z"}, "/minute"),
        ({"minute": 1_700_000_000}, "/minute"),
        ({"source": None}, "/source"),
        ({"ok_first": -1}, "/ok_first"),
        ({"ok_first": True}, "/ok_first"),
        ({"ok_first": 2**60}, "/ok_first"),
        ({"node": "No Node\n"}, "/node"),
        ({"colour": "red"}, "/colour"),
    ],
)
def test_a_wrong_outcome_is_refused_with_its_field(
    post: Post, change: dict[str, object], path: str
) -> None:
    answer = post([outcome(**change), outcome(sequence=9)])
    assert (answer.status_code, answer.json()["accepted"]) == (207, 1)
    (result,) = answer.json()["results"]
    assert [error["path"] for error in result["errors"]] == [path]


def test_outcomes_are_runs_of_their_series(post: Post, key: str) -> None:
    post([outcome(degraded=11)])
    headers = {"Authorization": f"Bearer {key}"}
    (series,) = Client().get("/api/v1/series", headers=headers).json()["items"]
    assert (series["runs"], series["degraded"]) == (54, 11)


def test_a_deploy_told_twice_is_one(post: Post, key: str) -> None:
    told = {
        "at": "2026-11-21T09:10:00+01:00",
        "kind": "prompt",
        "source": "support-bot",
        "version": "planner-v5",
        "note": "shorter tool list",
    }
    assert post(told, "/api/v1/deploys").status_code == 201
    assert post(told, "/api/v1/deploys").status_code == 200
    other = {**told, "version": "planner-v6", "source": None}
    assert post(other, "/api/v1/deploys").status_code == 201
    assert post(other, "/api/v1/deploys").status_code == 200
    assert Deploy.objects.count() == 2
    headers = {"Authorization": f"Bearer {key}"}
    page = Client().get("/api/v1/deploys", {"limit": "1"}, headers=headers).json()
    rest = {"cursor": page["next"]}
    last = Client().get("/api/v1/deploys", rest, headers=headers).json()
    versions = [item["version"] for item in page["items"] + last["items"]]
    assert versions == ["planner-v6", "planner-v5"]
    assert page["items"][0]["at"] == "2026-11-21T08:10:00Z"


def test_a_wrong_deploy_lists_its_fields(post: Post) -> None:
    answer = post({"kind": "coffee", "at": "soon"}, "/api/v1/deploys")
    assert answer.status_code == 422
    paths = {error["path"] for error in answer.json()["errors"]}
    assert paths == {"/kind", "/at", "/version"}
    assert post([], "/api/v1/deploys").status_code == 422

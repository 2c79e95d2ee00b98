"""Runs are listed newest first, page by page, and narrowed by what the row knows."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.recording import record
from diagnostics.prices.models import Price
from failsoft.events import PostedEvent
from tests.diagnostics.builders import degraded, succeeded, wire_event

pytestmark = pytest.mark.django_db
Get = Callable[..., Any]
OK, BAD, UNKNOWN = 200, 400, 404


@pytest.fixture
def get(project: Project) -> Get:
    key = issue_key(project, "tests", [Scope.READ]).text

    def ask(path: str = "/api/v1/runs", **asked: str) -> Any:
        return Client().get(path, asked, headers={"Authorization": f"Bearer {key}"})

    return ask


@pytest.fixture
def _runs(project: Project) -> None:
    """Four runs, of which two began together; the oldest has not ended."""
    now = clock.now() - timedelta(minutes=60.5)
    told: list[dict[str, Any]] = [
        succeeded(correlation_id="a/1", source="bot", occurred_at=now.isoformat()),
        succeeded(correlation_id="a/2", attempt=2, occurred_at=now.isoformat(), model="m-2"),
        degraded(
            correlation_id="b",
            name="graph.plan.degraded",
            reason="plan_parse_failed",
            occurred_at=(now + timedelta(minutes=1)).isoformat(),
            environment="prod",
        ),
        wire_event(
            correlation_id="c",
            occurred_at=(now - timedelta(days=2)).isoformat(),
            parse_error_type="truncated",
            schema="plan-2",
            validation_errors=[{"path": "/tool", "code": "missing", "message": "the field tool"}],
        ),
    ]
    record(project.pk, [PostedEvent.model_validate(wire) for wire in told])


def ids(answer: Any) -> list[str]:
    assert answer.status_code == OK, answer.content
    return [item["correlation_id"] for item in answer.json()["items"]]


@pytest.mark.usefixtures("_runs")
def test_runs_come_newest_first_page_by_page(get: Get) -> None:
    found, cursor = list[str](), dict[str, str]()
    while True:
        page = get(limit="1", **cursor)
        found += ids(page)
        if page.json()["next"] is None:
            break
        cursor = {"cursor": page.json()["next"]}
    assert found == ids(get()) == ["b", "a/2", "a/1", "c"]


@pytest.mark.usefixtures("_runs")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"outcome": "degraded"}, ["b"]),
        ({"outcome": "recovered"}, ["a/2"]),
        ({"node": "plan"}, ["b"]),
        ({"model": "m-2"}, ["a/2"]),
        ({"source": "-"}, ["b", "a/2", "c"]),
        ({"environment": "prod"}, ["b"]),
        ({"correlation_id": "a/1"}, ["a/1"]),
        # What people have of a reference is its beginning.
        ({"q": "corr:a/"}, ["a/2", "a/1"]),
        ({"q": "-node:plan m-2"}, ["a/2"]),
        ({"outcome": "repaired"}, ["a/2"]),
        ({"q": "outcome:recovered"}, ["a/2"]),
        ({"outcome": "open"}, ["c"]),
        ({"outcome": "stubbed"}, []),
        ({"kind": "succeeded"}, ["a/2", "a/1"]),
        ({"kind": "truncated"}, ["c"]),
        ({"q": "kind:truncated kind:degraded"}, ["b", "c"]),
        ({"q": "-kind:truncated -kind:degraded"}, ["a/2", "a/1"]),
        ({"schema": "plan-2"}, ["c"]),
        ({"schema": "-"}, ["b", "a/2", "a/1"]),
        # A run has an attempt 2 where one of its answers took two.
        ({"attempt": "2"}, ["b", "a/2"]),
        # What the row of a run does not say, its events do.
        ({"q": "pointer:/tool"}, ["c"]),
        ({"q": "-pointer:/tool"}, ["b", "a/2", "a/1"]),
        ({"reason": "plan_parse_failed"}, ["b"]),
        ({"q": '"the field tool"'}, ["c"]),
        ({"q": '-"the field tool" a/'}, ["a/2", "a/1"]),
        ({"range": "1h"}, ["b"]),
        ({"to": "2001-01-01T00:00:00Z", "from": "2000-01-01T00:00:00Z"}, []),
    ],
)
def test_runs_are_narrowed(get: Get, asked: dict[str, str], expected: list[str]) -> None:
    assert ids(get(**asked)) == expected


@pytest.mark.parametrize("asked", [{"outcome": "odd"}, {"q": "odd:a"}, {"cursor": "x"}])
def test_what_runs_do_not_know_is_refused(get: Get, asked: dict[str, str]) -> None:
    assert get(**asked).status_code == BAD


@pytest.mark.usefixtures("_runs")
def test_one_run_is_shown_by_its_id_and_only_in_its_project(get: Get, project: Project) -> None:
    shown = get("/api/v1/runs/a/2").json()
    assert (shown["outcome"], shown["attempts"], shown["models"]) == ("recovered", 2, ["fake/m-2"])
    other = Project.objects.create(slug="o", name="O")
    record(other.pk, [PostedEvent.model_validate(succeeded(correlation_id="theirs"))])
    assert get("/api/v1/runs/theirs").status_code == UNKNOWN


def test_a_run_costs_what_the_tokens_of_its_models_cost(get: Get, project: Project) -> None:
    for model, price in (("fake-1", 2), ("fake-2", 10)):
        Price.objects.create(
            project=project,
            provider="fake",
            model=model,
            input_per_million=price,
            output_per_million=0,
            valid_from="2020-01-01",
        )
    tokens = {"input_tokens": 1_000_000, "output_tokens": 5}
    for reference, models in {"one": ("fake-1", "fake-2"), "two": ("fake-1", "odd")}.items():
        events = [
            PostedEvent.model_validate(succeeded(correlation_id=reference, model=model, **tokens))
            for model in models
        ]
        record(project.pk, events)
    assert float(get("/api/v1/runs/one").json()["cost_usd"]) == 12
    assert get("/api/v1/runs/two").json()["cost_usd"] is None

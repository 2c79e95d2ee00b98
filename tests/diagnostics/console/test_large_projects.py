"""A project of more series than are judged: the busiest and the worst, then all others by page."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.alerting.statuses import store_statuses, stored_statuses
from diagnostics.queries import series
from diagnostics.store.aggregation import fold
from tests.console import make_member, post_runs

pytestmark = pytest.mark.django_db
BUSY, QUIET = [f"busy-{place}" for place in range(4)], [f"quiet-{place}" for place in range(6)]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    monkeypatch.setattr(series, "MOST_JUDGED", 4)
    monkeypatch.setattr(series, "MOST_WORST", 1)
    return clock.now()


@pytest.fixture
def project(now: datetime) -> Project:
    """Four busy models and six with little, of which one fails."""
    project = Project.objects.create(slug="p", name="P")
    at = now - timedelta(minutes=5)
    for model in BUSY:
        post_runs(project, 130, 0, at, model=model)
    for model in QUIET:
        post_runs(project, 3, 0, at, model=model)
    post_runs(project, 1, 119, at, model="bad")
    fold()
    return project


def ask(project: Project, **asked: str) -> dict[str, Any]:
    key = issue_key(project, "k", [Scope.READ]).text
    answer = Client().get("/api/v1/series", asked, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    return body


def test_the_busiest_and_the_worst_series_are_judged(project: Project, now: datetime) -> None:
    statuses = store_statuses(project.pk, now)
    assert sorted(key.model or "" for key in statuses.series) == ["bad", *BUSY]
    assert statuses.left_out == len(QUIET)
    read = stored_statuses(project.pk, now)
    assert read is not None
    assert (read.series, read.left_out) == (statuses.series, statuses.left_out)


def test_now_shows_them_with_the_number_of_the_others(
    project: Project, now: datetime, client: Client
) -> None:
    store_statuses(project.pk, now)
    client.force_login(make_member(project))
    html = client.get("/").content.decode()
    assert "5 of 5 models, 5 series: the busiest and the worst. 6 more series" in html
    assert 'href="/models/"' in html
    assert "quiet-" not in html.split('id="models-heading"')[1]
    assert "quiet-3" in client.get("/?model=quiet-3").content.decode().split("models-heading")[-1]


@pytest.mark.parametrize("limit", [1, 3, 500])
def test_the_pages_of_series_have_each_of_them_once(
    project: Project, now: datetime, limit: int
) -> None:
    store_statuses(project.pk, now)
    items: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = ask(project, limit=str(limit), **cursor)
        assert len(page["items"]) <= limit
        items += page["items"]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert items[0]["model"] == "bad"
    assert items[0]["state"] == "degrading"
    assert Counter(one["model"] for one in items) == Counter(["bad", *BUSY, *QUIET])
    others = {one["model"]: one for one in items[-len(QUIET) :]}
    assert {one: (others[one]["runs"], others[one]["state"]) for one in QUIET} == dict.fromkeys(
        QUIET, (3, "low_volume")
    )


def test_a_filter_finds_a_series_that_was_left_out(project: Project, now: datetime) -> None:
    store_statuses(project.pk, now)
    (found,) = ask(project, model="quiet-3")["items"]
    assert (found["model"], found["runs"]) == ("quiet-3", 3)


def test_a_small_project_is_paged_too(now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "MOST_JUDGED", 100)
    project = Project.objects.create(slug="p", name="P")
    for model in QUIET:
        post_runs(project, 3, 0, now - timedelta(minutes=5), model=model)
    first = ask(project, limit="4")
    rest = ask(project, limit="4", cursor=first["next"])
    assert (len(first["items"]), len(rest["items"]), rest["next"]) == (4, 2, None)


def test_a_cursor_that_was_not_given_out_is_refused(project: Project) -> None:
    key = issue_key(project, "k", [Scope.READ]).text
    asked = {"cursor": "nonsense"}
    answer = Client().get("/api/v1/series", asked, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 400

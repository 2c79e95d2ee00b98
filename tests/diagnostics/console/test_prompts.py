"""The prompts page, read as HTML."""

from datetime import datetime, timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from diagnostics.accounts.models import Project
from diagnostics.console.prompts import MOST_LINES, MOST_SOURCES
from diagnostics.ingest.models import Deploy
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from tests.console import make_member, post_runs
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(client: Client, project: Project) -> Client:
    client.force_login(make_member(project))
    return client


def page(client: Client, query: str = "") -> str:
    return client.get(f"/prompts/{query}").content.decode()


def two_versions(project: Project, at: datetime) -> None:
    """A calm version for days, then one whose answers are cut off."""
    post_runs(project, 60, 0, at - timedelta(days=3), source="bot", prompt_version="v1")
    post_runs(project, 40, 0, at, source="bot", prompt_version="v2")
    bad = [
        make_event(
            occurred_at=(at - timedelta(seconds=number)).isoformat(),
            parse_error_type="truncated",
            source="bot",
            prompt_version="v2",
        )
        for number in range(30)
    ]
    record(project.pk, bad)
    fold()


def test_an_empty_project_shows_what_would_fill_it(client: Client) -> None:
    html = page(client)
    assert "No prompt versions yet" in html
    assert "/api/v1/deploys" in html


def test_versions_stand_newest_first_with_what_they_brought(
    client: Client, project: Project, at: datetime
) -> None:
    two_versions(project, at)
    html = page(client)
    table = html.split("<tbody>")[1]
    assert table.index(">v2<") < table.index(">v1<")
    assert "after v1" in table
    assert "more-4" in table
    assert "Truncated" in table
    assert 'aria-label="v2: ' in html


def test_deploys_are_marked_and_listed(client: Client, project: Project, at: datetime) -> None:
    two_versions(project, at)
    Deploy.objects.create(project=project, at=at, kind="prompt", version="v2", source="bot")
    html = page(client)
    assert "v2 (bot)" in html
    assert 'class="flags"' in html


def test_what_was_observed_is_marked_where_its_model_is_shown(
    client: Client, project: Project, at: datetime
) -> None:
    two_versions(project, at)
    told = {"kind": "observed_model", "provider": "fake", "model": "fake-1"}
    Deploy.objects.create(project=project, at=at, **told, previous="old", version="new")
    html = page(client)
    assert "observed model fake-1: old → new" in html
    assert "old → new" in page(client, "?model=fake-1")
    assert "old → new" not in page(client, "?model=fake-2")


def test_filters_hold(client: Client, project: Project, at: datetime) -> None:
    two_versions(project, at)
    rows = page(client, "?prompt_version=v1").split("<tbody>")[1].split("</tbody>")[0]
    assert ">v1<" in rows
    assert ">v2<" not in rows
    assert "No call matches" in page(client, "?model=nobody")


def test_the_busiest_sources_are_shown_and_the_others_counted(
    client: Client, project: Project, at: datetime
) -> None:
    two_versions(project, at)
    for number in range(10):
        post_runs(project, number + 1, 0, at, source=f"s{number}", prompt_version="w")
    html = page(client)
    assert html.count("Versions of ") == MOST_SOURCES
    shown = [html.index(f"Versions of {name}") for name in ("bot", "s9", "s8")]
    assert shown == sorted(shown)
    assert "Versions of s0" not in html
    assert "3 more sources with fewer calls" in html
    assert "Versions of s0" in page(client, "?source=s0")


def test_every_source_keeps_its_newest_versions(
    client: Client, project: Project, at: datetime
) -> None:
    for number in range(18):
        when = at - timedelta(hours=6 * (18 - number))
        for source in ("bot", "ops"):
            post_runs(project, 2, 0, when, source=source, prompt_version=f"v{number}")
    html = page(client, "?range=7d")
    assert html.count('class="lane"') == MOST_LINES
    assert html.count("9 older versions not shown") == 2
    assert ">v17<" in html
    assert ">v8<" not in html


def test_other_projects_are_not_shown(client: Client, at: datetime) -> None:
    other = Project.objects.create(slug="other", name="Other")
    two_versions(other, at)
    assert "No prompt versions yet" in page(client)


def test_queries_do_not_grow_with_the_versions(
    client: Client,
    project: Project,
    at: datetime,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    two_versions(project, at)
    for number in range(8):
        post_runs(project, 9, 1, at, source=f"s{number}", prompt_version=f"w{number}")
    with django_assert_max_num_queries(14):
        client.get("/prompts/")


def test_the_range_that_is_chosen_is_shown(client: Client, project: Project, at: datetime) -> None:
    two_versions(project, at)
    assert '<a href="?" aria-current="true">30 d</a>' in page(client)
    assert "last 30 d" in page(client)
    html = page(client, "?range=24h")
    assert '<a href="?range=24h" aria-current="true">24 h</a>' in html
    assert "last 24 h" in html
    assert "<b>v1</b>" not in html
    assert "Counting" not in html

"""Search or jump to: every sort of thing is found, nothing of other projects."""

from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.models import Membership, Project, SavedView
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.store.aggregation import fold
from tests.agents.console.conftest import Read
from tests.console import make_goal, post_runs


@pytest.fixture
def found(project: Project) -> Project:
    """A project that has one of each."""
    now = clock.now()
    for reference in ("weekly-12", "weekly-13", "demo-goal-01"):
        post_runs(project, 1, 0, now, correlation_id=reference)
    post_runs(
        project,
        1,
        0,
        now,
        provider="anthropic",
        model="claude-haiku-4",
        prompt_version="planner-v6",
    )
    fold()
    open_incident(project)
    AlertRule.objects.create(
        project=project, name="Haiku above 10 %", signal="degraded_ratio", detector="change"
    )
    return project


def open_incident(project: Project) -> Incident:
    now = clock.now()
    return Incident.objects.create(
        project=project, title="anthropic/claude-haiku-4", onset=now, fired_at=now
    )


@pytest.mark.parametrize(
    ("text", "label", "address"),
    [
        ("weekly-", "weekly-13", "/runs/weekly-13/"),
        ("demo-goal-0", "demo-goal-01", "/runs/demo-goal-01/"),
        ("claude-haiku-4", "anthropic/claude-haiku-4", "/models/anthropic/claude-haiku-4/"),
        ("ANTHROPIC", "anthropic", "/models/?provider=anthropic"),
        ("truncated", "truncated", "/failures/?kind=truncated"),
        ("planner-v6", "planner-v6", "/prompts/?prompt_version=planner-v6"),
        ("haiku above", "Haiku above 10 %", "/alerts/rules/"),
        ("parse lab", "Parse lab", "/lab/"),
        ("retention", "Retention", "/settings/retention/"),
        ("refund", "Search failures for “refund”", "/failures/?range=7d&amp;q=refund"),
        ("two words", "Search failures for “two words”", "q=%22two+words%22"),
    ],
)
def test_p12_each_example_finds_something(
    found: Project, read: Read, text: str, label: str, address: str
) -> None:
    html = read("/search/", q=text)
    assert f">{label}</a>" in html
    assert f'href="{address}' in html or address in html


@pytest.mark.parametrize("form", ["#{}", "Incident {}", "incident #{}", "{}"])
def test_a_number_leads_to_the_incident(found: Project, client: Client, form: str) -> None:
    row = Incident.objects.get()
    answer = client.get("/search/", {"q": form.format(row.pk)})
    assert answer["Location"] == f"/incidents/{row.pk}/"


def test_a_whole_id_leads_straight_to_the_run(found: Project, client: Client) -> None:
    answer = client.get("/search/", {"q": " weekly-12 "}, follow=True)
    assert answer.redirect_chain[-1][0] == "/runs/weekly-12/"
    shown = client.get("/search/", {"q": "weekly-12"}, headers={"HX-Request": "true"})
    assert b">weekly-12</a>" in shown.content


def test_a_goal_is_found_before_its_first_event(project: Project, client: Client) -> None:
    make_goal(project, "just-queued")
    answer = client.get("/search/", {"q": "just-queued"}, follow=True)
    assert answer.redirect_chain[-1][0] == "/runs/just-queued/"


@pytest.mark.parametrize("text", ["100%_", "a\\b", "'; --", "<b>", "\0", "x" * 500, "é" * 200])
def test_any_text_is_answered_as_text(found: Project, client: Client, text: str) -> None:
    answer = client.get(f"/search/?q={quote(text)}")
    assert answer.status_code == 200
    assert b"<b>\xe2\x80\x9d" not in answer.content


def test_wildcards_of_the_database_are_letters(found: Project, read: Read) -> None:
    assert "weekly-1" not in read("/search/", q="weekly_").partition('id="results"')[2]


def test_nothing_of_other_projects_or_people_is_found(project: Project, read: Read) -> None:
    other = Project.objects.create(slug="other", name="Other")
    post_runs(other, 1, 0, clock.now(), correlation_id="their-run", model="their-model")
    fold()
    make_goal(other, "their-goal")
    AlertRule.objects.create(
        project=other, name="their rule", signal="degraded_ratio", detector="change"
    )
    eve = User.objects.create(username="eve")
    Membership.objects.create(project=project, user=eve, role="viewer")
    SavedView.objects.create(project=project, owner=eve, name="their view", page="now")
    html = read("/search/", q="their").partition('id="results"')[2]
    assert "their-run" not in html
    assert "their-model" not in html
    assert "their rule" not in html
    assert "their view" not in html
    assert "No run with ID" in read("/search/", q="their-goal")
    assert "No run with ID" in read("/search/", q=str(open_incident(other).pk))


def test_the_number_of_queries_does_not_depend_on_what_is_found(
    found: Project, client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(30):
        post_runs(found, 1, 0, clock.now(), correlation_id=f"many-{number}", model=f"many-{number}")
    fold()
    client.get("/search/")
    with django_assert_max_num_queries(16) as none:
        client.get("/search/", {"q": "nothing of the sort"})
    with django_assert_max_num_queries(len(none)):
        client.get("/search/", {"q": "many-"})

"""The list of runs: everything that any agent did."""

import re
from datetime import datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.console.run_list import PAGE
from agents.goals.claims import stop_planning
from agents.goals.models import Goal
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.ingest.recording import record
from diagnostics.queries import events as event_queries
from failsoft.events import PostedEvent
from tests.agents.console.conftest import Read
from tests.console import make_goal, make_member
from tests.diagnostics.builders import degraded, succeeded, wire_event

MOST_BYTES, MOST_NODES = 60_000, 1_500


def send(project: Project, *events: dict[str, Any], at: datetime | None = None) -> None:
    """Record events of external agents, five minutes ago unless told."""
    told = (at or clock.now() - timedelta(minutes=5)).isoformat()
    events = tuple({**event, "occurred_at": told} for event in events)
    record(project.pk, [PostedEvent.model_validate(event) for event in events])


def send_many(project: Project, number: int) -> None:
    """Record runs r000, r001, ...: the later, the newer."""
    begin = clock.now() - timedelta(hours=1)
    record(
        project.pk,
        [
            PostedEvent.model_validate(
                succeeded(
                    correlation_id=f"r{index:03}",
                    occurred_at=(begin + timedelta(seconds=index)).isoformat(),
                    source="support-bot",
                    environment="prod",
                )
            )
            for index in range(number)
        ],
    )


def listed(html: str) -> list[str]:
    """Give the correlation ids of the rows, in their order."""
    return re.findall(r'<a class="name mono" href="[^"]*">([^<]+)</a>', html)


@pytest.fixture
def _two(project: Project) -> None:
    """A degraded run of an external agent, and a good one of a goal of ours."""
    told = {"environment": "prod", "source": "bot", "prompt_version": "v2", "schema": "s-1"}
    cut = wire_event(correlation_id="bot/1", parse_error_type="truncated", **told)
    send(project, cut, degraded(correlation_id="bot/1", **told))
    make_goal(project, "mine", text_preview="Refund order 17", status="completed")
    send(project, succeeded(correlation_id="mine", model="m-2", provider="other"))


@pytest.mark.usefixtures("_two")
def test_p11_goals_and_runs_of_external_agents_are_one_list(read: Read) -> None:
    html = read("/runs/")
    assert set(listed(html)) == {"bot/1", "mine"}
    assert "Refund order 17" in html
    assert "</svg>Degraded</span>" in html
    assert "</svg>First pass</span>" in html
    assert 'href="/runs/bot/1/"' in html


@pytest.mark.usefixtures("_two")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"environment": "prod"}, {"bot/1"}),
        ({"node": "plan"}, set()),
        ({"provider": "other"}, {"mine"}),
        ({"model": "m-2"}, {"mine"}),
        ({"prompt_version": "v2"}, {"bot/1"}),
        ({"schema": "s-1"}, {"bot/1"}),
        ({"kind": "truncated"}, {"bot/1"}),
        ({"kind": "refusal"}, set()),
        ({"kind": "nothing"}, set()),
        ({"q": "-kind:nothing"}, {"bot/1", "mine"}),
        ({"source": "bot"}, {"bot/1"}),
        ({"outcome": "degraded"}, {"bot/1"}),
        ({"outcome": "ok_first"}, {"mine"}),
        ({"attempt": "2"}, {"bot/1"}),
        ({"q": "corr:bot"}, {"bot/1"}),
        ({"q": "corr:ot"}, set()),
        ({"q": "refund"}, {"mine"}),
        ({"q": '"expected an object"'}, {"bot/1"}),
        ({"q": "-truncated -refund"}, {"bot/1"}),
        ({"q": "zzzz"}, set()),
        ({"q": "%"}, set()),
        ({"status": "completed"}, {"mine"}),
        ({"cursor": "nonsense"}, {"bot/1", "mine"}),
        ({"from": "2020-01-01T00:00Z", "to": "2020-01-02T00:00Z"}, set()),
    ],
)
def test_p11_every_filter_applies(read: Read, query: dict[str, str], found: set[str]) -> None:
    assert set(listed(read("/runs/", **query))) == found


@pytest.mark.usefixtures("_two")
@pytest.mark.parametrize(
    "query",
    [
        {},
        {"outcome": "degraded"},
        {"q": "refund"},
        {"kind": "truncated"},
        {"status": "completed"},
        {"status": "failed"},
        {"status": "nonsense"},
    ],
)
def test_an_export_has_the_runs_of_the_page(client: Client, query: dict[str, str]) -> None:
    html = client.get("/runs/", query).content.decode()
    (address,) = re.findall(r'href="(/export/runs\.ndjson[^"]*)"', html)
    lines = b"".join(client.get(unescape(address)).streaming_content)  # type: ignore[attr-defined]
    assert lines.count(b"\n") == len(listed(html))


def test_newest_come_first_and_pages_follow_by_keyset(project: Project, read: Read) -> None:
    send_many(project, PAGE + 3)
    first = read("/runs/")
    assert listed(first)[0] == f"r{PAGE + 2:03}"
    assert len(listed(first)) == PAGE
    (older,) = re.findall(r'rel="next" href="\?cursor=([^"]+)"', first)
    send_many(project, PAGE + 5)
    assert listed(read("/runs/", cursor=older)) == ["r002", "r001", "r000"]


def test_no_match_is_no_empty_project(project: Project, read: Read) -> None:
    send_many(project, 1)
    html = read("/runs/", model="nobody", status="failed", cursor="nonsense")
    assert "No matching runs" in html
    longer = re.findall(r'href="([^"]*)">search the last 90 days', html)
    assert [unescape(link) for link in longer] == ["?model=nobody&status=failed&range=90d"]


def test_bug_9_the_snippet_of_an_empty_list_names_the_address(read: Read) -> None:
    html = read("/runs/")
    assert "curl http://testserver/api/v1/goals" in html
    assert "curl http://testserver/api/v1/plans/runs" in read("/plan-runs/")


def test_goals_that_have_not_ended_are_listed_above_and_polled(
    project: Project, read: Read
) -> None:
    goal = make_goal(project, status="waiting_user", text_preview="Which account")
    html = read("/runs/")
    assert "Goals in progress" in html
    assert "Waiting for answer" in html
    assert 'hx-select="#waiting"' in html
    Goal.objects.filter(pk=goal.pk).update(status="cancelled")
    assert "Goals in progress" not in read("/runs/")


def test_runs_are_followed_where_it_is_asked(project: Project, read: Read) -> None:
    send_many(project, PAGE + 1)
    assert 'hx-select="#rows"' not in read("/runs/")
    assert 'hx-select="#rows"' in read("/runs/", follow="runs")
    ended = {"from": "2020-01-01T00:00Z", "to": "2020-01-02T00:00Z"}
    assert 'hx-select="#rows"' not in read("/runs/", follow="runs", **ended)


def test_runs_of_another_project_are_not_listed(read: Read) -> None:
    other = Project.objects.create(slug="other", name="Other")
    make_goal(other, "foreign", status="queued")
    send(other, succeeded(correlation_id="foreign"))
    assert "foreign" not in read("/runs/")


def test_the_old_list_of_goals_leads_here_with_its_filters(client: Client) -> None:
    assert client.get("/goals/?model=haiku&status=failed")["Location"] == (
        "/runs/?model=haiku&status=failed"
    )


@pytest.mark.parametrize("query", ["", "?kind=truncated", "?q=fake", "?follow=runs"])
def test_query_count_does_not_grow_with_the_runs(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    # A search reads in stretches that grow as fast as the machine is.
    monkeypatch.setattr(event_queries, "SHORTEST_STRETCH", timedelta(days=400))
    send_many(project, 1)
    with CaptureQueriesContext(connection) as few:
        client.get(f"/runs/{query}")
    send_many(project, PAGE)
    with CaptureQueriesContext(connection) as many:
        client.get(f"/runs/{query}")
    assert len(many) <= len(few)


def test_full_page_keeps_the_budgets(project: Project, read: Read) -> None:
    send_many(project, PAGE + 1)
    for number in range(12):
        make_goal(project, f"waiting-{number}")
    html = read("/runs/")
    assert len(html.encode()) <= MOST_BYTES
    assert html.count("<") - html.count("</") <= MOST_NODES


def test_stopped_planning_is_said_where_goals_wait_and_where_one_is_submitted(
    project: Project, read: Read
) -> None:
    stop_planning(project, make_member(project, "zoe"), "the provider moves")
    make_goal(project, status="completed", outcome="ok_first")
    assert "Planning is stopped" not in read("/runs/")
    make_goal(project, "waiting", status="queued")
    for path in ("/runs/", "/goals/new/"):
        html = read(path)
        assert "Planning is stopped" in html
        assert ", by zoe: the provider moves." in html


def test_hostile_values_stay_text(project: Project, read: Read) -> None:
    nasty = "<script>alert(1)</script>"
    send(project, succeeded(correlation_id=nasty, model=nasty, source=nasty, environment=nasty))
    html = read("/runs/")
    assert nasty not in html
    assert "/find/?reference=%3Cscript%3E" in html


def test_runs_are_sorted_by_tokens_and_time_of_the_newest_that_match(
    read: Read, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = clock.now() - timedelta(minutes=5)
    for number, tokens in enumerate((10, 900, 500, 70)):
        one = succeeded(correlation_id=f"r{number}", input_tokens=tokens, output_tokens=1)
        send(project, one, at=at + timedelta(seconds=number))
    assert listed(read("/runs/")) == ["r3", "r2", "r1", "r0"]
    html = read("/runs/", sort="tokens")
    assert listed(html) == ["r1", "r2", "r3", "r0"]
    assert html.count("aria-sort=") == 1
    assert 'aria-sort="descending"><a href="?sort=-tokens">Tokens' in html
    assert listed(read("/runs/", sort="-tokens")) == ["r0", "r3", "r2", "r1"]
    assert listed(read("/runs/", sort="colour")) == ["r3", "r2", "r1", "r0"]
    monkeypatch.setattr("agents.console.run_list.MOST_SORTED", 2)
    html = read("/runs/", sort="tokens")
    assert listed(html) == ["r2", "r3"]
    assert "Sorted among 2 runs that match" in html
    after = re.search(r'rel="next" href="\?([^"]*)"', html)
    assert after is not None
    older = dict(parse_qsl(unescape(after[1])))
    assert listed(read("/runs/", **older)) == ["r1", "r0"], "stable while runs keep coming in"


def test_what_is_followed_stays_newest_first(read: Read, project: Project) -> None:
    send_many(project, 3)
    html = read("/runs/", sort="tokens", follow="runs")
    assert listed(html) == ["r002", "r001", "r000"]
    assert not re.search(r"<th[^>]*><a", html)


def test_a_run_leads_back_to_the_list(read: Read, project: Project) -> None:
    send(project, succeeded(correlation_id="a/1"))
    html = read("/runs/a/1/")
    assert re.search(r'class="crumbs"[^>]*><a href="/runs/">Runs</a>.*<b[^>]*>a/1</b>', html)

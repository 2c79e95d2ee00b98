"""The tail of events."""

import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.console import live
from diagnostics.queries import events
from tests.console import make_member, post_runs, recently
from tests.diagnostics.alerting.notifications.building import travel

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def client(client: Client, project: Project) -> Client:
    client.force_login(make_member(project))
    return client


def page(client: Client, query: str = "") -> str:
    asked = dict(parse_qsl(query.lstrip("?")))
    return client.get("/runs/", {**asked, "follow": "calls"}).content.decode()


def poll_of(html: str) -> str:
    return unescape(re.findall(r'id="tail-poll".*?hx-get="([^"]+)"', html)[0])


def poll(client: Client, html: str, **headers: str) -> Any:
    return client.get(poll_of(html), headers={**HTMX, **headers})


def rows(html: str) -> int:
    return html.count('<li class="is-')


def test_the_newest_come_first_under_the_filters(client: Client, project: Project) -> None:
    at = recently()
    post_runs(project, 3, 1, at, model="haiku")
    post_runs(project, 2, 0, at, model="other")
    assert rows(page(client)) == 6
    html = page(client, "?model=haiku")
    assert rows(html) == 4
    assert "model=haiku&after=" in poll_of(html)
    assert rows(page(client, "?outcome=degraded")) == 1


def test_a_poll_brings_what_came_since_and_goes_on_from_there(
    client: Client, project: Project
) -> None:
    now = clock.now()
    post_runs(project, 1, 0, now - timedelta(minutes=5))
    first = page(client)
    post_runs(project, 2, 0, now - timedelta(minutes=1))
    second = poll(client, first).content.decode()
    assert rows(second) == 2
    assert 'hx-swap-oob="true"' in second
    assert poll_of(second) != poll_of(first)
    assert rows(poll(client, second).content.decode()) == 0


def test_what_arrives_late_within_two_seconds_is_not_lost(client: Client, project: Project) -> None:
    now = clock.now()
    post_runs(project, 1, 0, now)
    first = page(client)
    post_runs(project, 1, 0, now - timedelta(milliseconds=500))
    travel(timedelta(seconds=3))
    assert rows(first) + rows(poll(client, first).content.decode()) == 2


def test_nothing_new_is_not_sent_again(client: Client, project: Project) -> None:
    post_runs(project, 1, 0, recently())
    html = page(client)
    tag = poll(client, html)["ETag"]
    assert poll(client, html, **{"If-None-Match": tag}).status_code == 304


def test_a_flood_is_cut_and_counted(
    client: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_ROWS", 4)
    monkeypatch.setattr(live, "MOST_COUNTED", 8)
    now = clock.now()
    post_runs(project, 1, 0, now - timedelta(minutes=5))
    first = page(client)
    post_runs(project, 6, 0, now - timedelta(minutes=1))
    html = poll(client, first).content.decode()
    assert rows(html) == 4
    assert "… and 2 more" in html
    post_runs(project, 12, 0, now - timedelta(seconds=20))
    assert "or still more" in poll(client, first).content.decode()


def test_a_range_that_has_ended_is_not_followed(client: Client, project: Project) -> None:
    html = page(client, "?from=2026-01-01T00:00Z&to=2026-01-02T00:00Z")
    assert "tail-poll" not in html
    assert "the range has ended" in html


@pytest.mark.parametrize("after", ["", "nonsense", "bm9uZQ"])
def test_a_cursor_of_nobody_begins_now(client: Client, project: Project, after: str) -> None:
    post_runs(project, 1, 0, recently())
    answer = client.get("/live/rows/", {"after": after}, headers=HTMX)
    assert answer.status_code == 200
    assert rows(answer.content.decode()) == 0


def test_the_old_address_of_the_tail_follows_calls_under_its_filters(client: Client) -> None:
    assert client.get("/live/?model=haiku")["Location"] == "/runs/?model=haiku&follow=calls"


def test_rows_alone_are_no_page(client: Client) -> None:
    assert client.get("/live/rows/")["Location"] == "/runs/?follow=calls"


def test_another_projects_events_are_not_there(client: Client) -> None:
    other = Project.objects.create(slug="o", name="Other")
    post_runs(other, 3, 0, recently(), model="foreign")
    html = page(client)
    assert rows(html) == 0
    assert "No matching calls" in html
    assert "foreign" not in html


def test_hostile_values_stay_text(client: Client, project: Project) -> None:
    nasty = "<script>alert(1)</script>"
    post_runs(project, 1, 0, recently(), model=nasty)
    assert nasty not in page(client)


def test_queries_do_not_grow_and_the_page_keeps_its_budgets(
    client: Client, project: Project
) -> None:
    at = recently()
    post_runs(project, 1, 0, at)
    with CaptureQueriesContext(connection) as few:
        page(client)
    post_runs(project, 90, 10, at)
    with CaptureQueriesContext(connection) as many:
        html = page(client)
    assert len(many) == len(few)
    assert len(html.encode()) <= 60_000
    assert html.count("<") - html.count("</") <= 1_500


def test_a_search_that_ends_early_says_where_and_goes_on(
    client: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    post_runs(project, 0, 1, clock.now() - timedelta(hours=3))
    monkeypatch.setattr(events, "PATIENCE_SECONDS", 0)
    html = page(client, "?q=fake")
    assert rows(html) == 0
    for _ in range(10):
        (further,) = re.findall(r'<a href="([^"]+)">Search further back', html)
        html = page(client, unescape(further))
        if rows(html):
            break
    assert rows(html) == 1

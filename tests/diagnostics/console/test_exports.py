"""Exports for people: the rows of the API, under the filters of the page."""

import codecs
import csv
import io
import json
import re
from datetime import timedelta
from html import unescape
from urllib.parse import urlencode

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.failures.models import FailureGroup
from diagnostics.store.aggregation import fold
from tests.console import Role, make_goal, make_member, post_and_fold, post_runs, recently
from tests.diagnostics.builders import wire_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(client: Client, project: Project) -> Client:
    client.force_login(make_member(project, role=Role.VIEWER))
    return client


def body(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    return answer.getvalue().decode()


def test_events_come_as_csv_with_formulas_quoted(client: Client, project: Project) -> None:
    at = recently()
    post_runs(project, 1, 1, at, model="=cmd|' /C calc'!A0")
    post_runs(project, 2, 0, at, model="other")
    answer = client.get("/export/events.csv?range=24h&outcome=degraded")
    assert answer["Content-Type"].startswith("text/csv")
    assert 'filename="failsoft-events-' in answer["Content-Disposition"]
    assert answer["Cache-Control"] == "private, no-store"
    rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode("utf-8-sig"))))
    assert [row["model"] for row in rows] == ["'=cmd|' /C calc'!A0"]


@pytest.mark.parametrize(
    "path",
    [
        "/export/events.csv?range=24h",
        "/export/compare.csv?range=24h",
        "/settings/audit/export/?format=csv",
    ],
)
def test_a_csv_file_is_kept_by_no_cache_and_marked_as_utf_8_for_spreadsheets(
    client: Client, project: Project, path: str
) -> None:
    client.force_login(make_member(project, "boss", Role.ADMIN))
    post_runs(project, 1, 1, recently(), model="größer")
    answer = client.get(path)
    assert "no-store" in answer["Cache-Control"]
    content = answer.getvalue()
    assert content.startswith(codecs.BOM_UTF8)
    assert content.count(codecs.BOM_UTF8) == 1


def test_json_lines_begin_without_it(client: Client, project: Project) -> None:
    post_runs(project, 1, 1, recently())
    assert body(client, "/export/events.ndjson?range=24h").startswith("{")


def test_json_lines_hold_the_same_rows(client: Client, project: Project) -> None:
    post_runs(project, 3, 0, recently(), model="m")
    lines = body(client, "/export/events.ndjson?range=24h&model=m").splitlines()
    assert {json.loads(line)["model"] for line in lines} == {"m"}
    assert len(lines) == 3


def exported(client: Client, page: str, name: str) -> int:
    """Count the rows of the file that a page links to."""
    html = client.get(page).content.decode()
    (address,) = re.findall(rf'href="(/export/{name}\.ndjson[^"]*)"', html)
    return body(client, unescape(address)).count("\n")


@pytest.mark.parametrize(("query", "rows"), [("", 1), ("?state=muted", 1), ("?state=all", 2)])
def test_failures_are_exported_in_the_states_of_the_page(
    client: Client, project: Project, query: str, rows: int
) -> None:
    for kind in ("truncated", "refusal"):
        when = recently().isoformat()
        post_and_fold(project, wire_event(parse_error_type=kind, occurred_at=when))
    FailureGroup.objects.filter(error_type="refusal").update(state="muted")
    assert exported(client, f"/failures/{query}", "failures") == rows


def test_a_range_that_only_ends_is_exported_from_where_the_page_begins(
    client: Client, project: Project
) -> None:
    for age in (timedelta(hours=1), timedelta(days=3)):
        post_runs(project, 1, 0, clock.now() - age)
    query = urlencode({"to": clock.now().isoformat()})
    assert exported(client, f"/?{query}", "events") == 1


def test_a_link_is_followed_by_what_accepts_html_alone(client: Client, project: Project) -> None:
    answer = client.get("/export/events.csv?range=24h", HTTP_ACCEPT="text/html")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/csv")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["failures", "incidents", "series", "goals"])
def test_every_list_can_be_taken_along(client: Client, project: Project, name: str) -> None:
    post_runs(project, 3, 2, recently())
    fold()
    make_goal(project, "run-1", text_preview="@SUM(1)")
    text = body(client, f"/export/{name}.csv?range=24h")
    assert text.count("\n") >= (1 if name in ("failures", "incidents") else 2)
    if name == "goals":
        assert "'@SUM(1)" in text


def test_another_project_is_not_in_it(client: Client) -> None:
    other = Project.objects.create(slug="o", name="Other")
    post_runs(other, 3, 0, recently(), model="foreign")
    make_goal(other, "foreign")
    assert "foreign" not in body(client, "/export/events.csv?range=24h")
    assert "foreign" not in body(client, "/export/goals.csv?range=24h")


def test_a_wrong_filter_is_refused_and_unknown_lists_are_not_found(client: Client) -> None:
    assert client.get("/export/events.csv?colour=red").status_code == 400
    assert client.get("/export/keys.csv").status_code == 404
    assert client.get("/export/events.xlsx").status_code == 404
    assert client.get("/export/goals.json").status_code == 404
    assert client.post("/export/events.csv").status_code == 405


def test_visitors_sign_in_first(client: Client) -> None:
    client.logout()
    assert "/accounts/login/" in client.get("/export/events.csv")["Location"]

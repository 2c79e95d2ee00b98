"""Lists: filters, keyset, CSV and JSON lines."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from tests.console import post_events
from tests.diagnostics.builders import AT, degraded, succeeded, wire_event

pytestmark = pytest.mark.django_db
URL = "/api/v1/events"
Ask = Callable[..., Any]
EVENTS = [
    wire_event(correlation_id="one", model="claude-haiku", environment="prod"),
    wire_event(correlation_id="two", model="claude-haiku", environment="dev"),
    wire_event(
        correlation_id="three",
        model="gpt",
        parse_error_type="truncated",
        attempt=2,
        raw_output_preview="the needle in the answer",
        validation_errors=[{"path": "/steps/2/tool", "code": "missing"}],
    ),
    succeeded(correlation_id="four", model="gpt", attempt=2),
    degraded(correlation_id="=five", model=None, source="bot"),
]


@pytest.fixture
def ask(project: Project) -> Ask:
    post_events(project, *EVENTS)
    key = issue_key(project, "k", [Scope.READ]).text

    def send(accept: str = "application/json", url: str = URL, **asked: str) -> Any:
        headers = {"Authorization": f"Bearer {key}", "Accept": accept}
        return Client().get(url, asked, headers=headers)

    return send


def references(answer: Any) -> set[str]:
    assert answer.status_code == 200, answer.content
    return {item["correlation_id"] for item in answer.json()["items"]}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"q": "model:haiku -env:dev"}, {"one"}),
        ({"q": "model:haiku"}, {"one", "two"}),
        ({"q": "-model:haiku"}, {"three", "four", "=five"}),
        ({"q": "model:-"}, {"=five"}),
        ({"q": "-model:-"}, {"one", "two", "three", "four"}),
        ({"q": "kind:truncated"}, {"three"}),
        ({"q": "corr:t"}, {"two", "three"}),
        ({"q": "model:haiku model:=gpt kind:parse_invalid"}, {"one", "two", "three"}),
        ({"attempt": "2"}, {"three", "four"}),
        ({"outcome": "repaired"}, {"four"}),
        ({"name": "graph.next_step.degraded"}, {"=five"}),
        ({"name": "nonsense"}, set()),
        ({"reason": "next_step_parse_failed"}, {"=five"}),
        ({"source": "bot"}, {"=five"}),
        ({"from": AT.isoformat(), "q": "needle"}, {"three"}),
        ({"from": AT.isoformat(), "q": '-"needle in"'}, {"one", "two", "four", "=five"}),
        ({"from": AT.isoformat(), "pointer": "/steps/2/tool"}, {"three"}),
        ({"from": AT.isoformat(), "code": "missing"}, {"three"}),
    ],
)
def test_events_are_narrowed(ask: Ask, asked: dict[str, str], found: set[str]) -> None:
    asked = {"to": "2026-11-21T15:00:00Z", **asked}
    assert references(ask(**asked)) == found


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"from": "yesterday"}, "from"),
        ({"from": "2026-11-21T14:00:00"}, "from"),
        ({"range": "3w"}, "range"),
        ({"attempt": "x"}, "attempt"),
        ({"q": "colour:red"}, "q"),
        ({"tz": "Mars/Olympus"}, "tz"),
        ({"nonsense": "1"}, "nonsense"),
        ({"limit": "0"}, "limit"),
        ({"limit": "0000000019999999"}, "limit"),
        ({"limit": "9" * 5_000}, "limit"),
        ({"cursor": "zzz"}, "cursor"),
    ],
)
def test_a_filter_that_cannot_be_read_is_named(ask: Ask, asked: dict[str, str], field: str) -> None:
    answer = ask(**asked)
    assert answer.status_code == 400
    assert field in answer.json()


def test_a_scan_of_more_than_seven_days_says_so(ask: Ask) -> None:
    asked = {"from": "2026-10-01T00:00:00Z", "to": "2026-11-22T00:00:00Z"}
    assert ask(**asked).json()["notes"] == []
    (note,) = ask(**asked, q="needle").json()["notes"]
    assert "7 days" in note


def test_pages_by_cursor_give_every_event_once(ask: Ask) -> None:
    seen: list[str] = []
    cursor = ""
    while True:
        body = ask(limit="2", **({"cursor": cursor} if cursor else {})).json()
        seen += [item["correlation_id"] for item in body["items"]]
        cursor = body["next"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(event["correlation_id"] for event in EVENTS)


def test_csv_quotes_what_a_spreadsheet_would_run(ask: Ask) -> None:
    answer = ask("text/csv")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode())))
    assert len(rows) == len(EVENTS)
    assert {row["correlation_id"] for row in rows} >= {"'=five", "one"}
    assert rows[0]["attributes"] == ""


def test_json_lines_stream_the_same_rows(ask: Ask) -> None:
    answer = ask("application/x-ndjson", limit="3")
    rows = [json.loads(line) for line in answer.getvalue().splitlines()]
    assert rows == ask(limit="3").json()["items"]
    assert len(ask("application/x-ndjson").getvalue().splitlines()) == len(EVENTS)
    stream = ask("application/x-ndjson").getvalue()
    assert ask("*/*", format="ndjson").getvalue() == stream
    assert ask("application/json", format="ndjson").getvalue() == stream


@pytest.mark.parametrize(
    ("url", "known"), [(URL, "json, csv, ndjson"), ("/api/v1/verdict", "json")]
)
def test_an_unknown_format_is_refused_with_those_known(ask: Ask, url: str, known: str) -> None:
    answer = ask("text/csv", url, format="xlsx")
    assert answer.status_code == 400
    assert answer.json()["detail"] == f"format: one of {known}"


def test_a_refusal_is_json_whatever_was_asked_for(ask: Ask) -> None:
    answer = ask("text/csv", limit="0")
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/json"
    assert "limit" in answer.json()


def test_series_are_narrowed_by_part_of_a_name(ask: Ask) -> None:
    window = {"from": "2026-11-21T14:00:00Z", "to": "2026-11-21T15:00:00Z"}
    series = ask(url="/api/v1/series", **window, q="-model:-").json()["items"]
    assert {item["model"] for item in series} == {"gpt", "claude-haiku"}
    assert ask(url="/api/v1/series", q="word").status_code == 400
    assert ask(url="/api/v1/series", kind="truncated").status_code == 400
    lines = ask("text/csv", url="/api/v1/series", **window).getvalue().decode()
    assert lines.startswith("provider,model,node,environment,state")

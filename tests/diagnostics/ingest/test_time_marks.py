"""A sender whose clock is ahead, or whose events come late: counted, marked and told."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.alerting.evaluator import evaluate_project
from diagnostics.alerting.incident_models import Incident
from diagnostics.ingest.key_counts import tallies_of
from diagnostics.ingest.models import UnplacedCall
from diagnostics.ingest.span_runs import settle_runs
from diagnostics.purge import purge_correlation
from diagnostics.store.aggregation import fold
from diagnostics.store.models import Event
from diagnostics.store.run_models import AgentRun
from diagnostics.store.sql import fetch
from diagnostics.store.windows import floor
from diagnostics.tasks import purge_identities
from tests.console import make_member
from tests.diagnostics.alert_calls import MINUTE, count_degraded
from tests.diagnostics.builders import degraded, succeeded, wire_event
from tests.diagnostics.otlp_bodies import MILLISECOND_NS, as_json, span, traces
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
Post = Callable[..., Any]
AHEAD = "{} more than 5 minutes ahead of this server's clock, counted on arrival"
LATE = "{} more than 15 minutes late: in charts, but not in alert rules"


@pytest.fixture
def key(project: Project) -> str:
    return issue_key(project, "tests", [Scope.INGEST, Scope.READ]).text


@pytest.fixture
def post(key: str) -> Post:
    def send(items: list[dict[str, Any]], path: str = "/api/v1/events") -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        body = json.dumps(items)
        return Client().post(path, body, content_type="application/json", headers=headers).json()

    return send


@pytest.fixture
def export(key: str) -> Post:
    def send(*spans: Any) -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        body = as_json(traces(*spans))
        answer = Client().post("/v1/traces", body, content_type="application/json", headers=headers)
        return answer.json()

    return send


def listed(key: str, **asked: str) -> list[dict[str, Any]]:
    answer = Client().get("/api/v1/events", asked, headers={"Authorization": f"Bearer {key}"})
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def minutes(column: str = "events") -> list[tuple[datetime, int]]:
    fold()
    text = f"SELECT bucket, sum({column}) FROM diagnostics_rollup_minute GROUP BY 1 ORDER BY 1"  # noqa: S608 - ours
    return [(bucket, int(count)) for bucket, count in fetch(text) if count]


def test_s9_an_event_ahead_of_the_clock_keeps_its_time_and_counts_when_it_arrives(
    post: Post, key: str
) -> None:
    before = clock.now()
    sent = (before + 2 * HOUR).isoformat()
    told = post([wire_event(occurred_at=sent, correlation_id="ahead")])
    assert told["warnings"] == [{"path": "", "code": "ahead", "message": AHEAD.format("1 item")}]
    (item,) = listed(key, range="1h")
    assert datetime.fromisoformat(item["occurred_at"]) == before + 2 * HOUR
    assert item["time_mark"] == "ahead"
    received = datetime.fromisoformat(item["received_at"])
    assert before <= received <= clock.now()
    assert minutes() == [(floor(received, MINUTE), 1)]
    assert AgentRun.objects.get().ended_at == received


def test_a_clock_within_the_bound_is_taken_as_it_is(post: Post, key: str) -> None:
    sent = clock.now() + timedelta(minutes=4)
    assert "warnings" not in post([wire_event(occurred_at=sent.isoformat())])
    (item,) = listed(key)
    assert (datetime.fromisoformat(item["occurred_at"]), item["time_mark"]) == (sent, None)
    assert minutes() == [(floor(sent, MINUTE), 1)]


def test_s10_an_event_ahead_of_the_clock_that_is_sent_again_is_a_duplicate(post: Post) -> None:
    event = wire_event(occurred_at=(clock.now() + 2 * HOUR).isoformat())
    assert post([event, event])["warnings"][0]["message"] == AHEAD.format("1 item")
    again = post([event])
    assert (again["duplicates"], again.get("warnings")) == (1, None)
    changed = post([{**event, "attempt": 2}])
    assert changed["results"][0]["status"] == "conflict"
    assert Event.objects.count() == 1


def test_an_event_that_was_ahead_of_the_clock_is_a_duplicate_nine_days_later(post: Post) -> None:
    event = wire_event(occurred_at=(clock.now() + 2 * HOUR).isoformat())
    assert post([event])["accepted"] == 1
    shift_clock(clock.now() + timedelta(days=9))
    purge_identities()
    assert post([event])["duplicates"] == 1
    assert Event.objects.count() == 1


def test_an_event_twenty_minutes_late_is_in_charts_and_the_answer_says_what_else(
    post: Post, key: str, project: Project
) -> None:
    sent = clock.now() - timedelta(minutes=20)
    told = post([wire_event(occurred_at=sent.isoformat())])
    assert told["warnings"] == [{"path": "", "code": "late", "message": LATE.format("1 item")}]
    (item,) = listed(key)
    assert (datetime.fromisoformat(item["occurred_at"]), item["time_mark"]) == (sent, "late")
    assert minutes() == [(floor(sent, MINUTE), 1)]
    (counts,) = tallies_of(project.pk, "api_key", clock.now() - HOUR).values()
    assert (counts.late, counts.ahead) == (1, 0)


def test_counted_minutes_ahead_of_the_clock_count_when_they_arrive(post: Post) -> None:
    minute = floor(clock.now(), MINUTE)
    row = {"source": "bot", "node": "plan", "ok_first": 3}
    times = (minute + 2 * HOUR, minute - MINUTE, minute - timedelta(minutes=20))
    told = post([{**row, "minute": at.isoformat()} for at in times], "/api/v1/outcomes")
    assert [warning["code"] for warning in told["warnings"]] == ["ahead", "late"]
    (late, _), (recent, _), (arrived, runs) = minutes("runs")
    assert (late, recent, runs) == (times[2], times[1], 3)
    assert minute <= arrived <= clock.now()


def test_an_alert_fires_by_events_of_a_clock_that_is_ahead(post: Post, project: Project) -> None:
    count_degraded(project.pk)
    sent = (clock.now() + 2 * HOUR).isoformat()
    post([degraded(occurred_at=sent, correlation_id=f"run-{number}") for number in range(3)])
    fold()
    evaluate_project(project.pk, clock.now())
    assert Incident.objects.filter(project=project).count() == 1


def test_the_attempts_of_spans_ahead_of_the_clock_are_told_by_their_own_times(
    export: Post, project: Project
) -> None:
    start = int((clock.now() + 2 * HOUR).timestamp()) * 1_000_000_000
    failed = span({"error.type": "timeout"}, span_id="1" * 16, start_ns=start)
    answer = {"gen_ai.output.type": "json", "gen_ai.completion": '{"steps": []}'}
    retried = span(answer, span_id="2" * 16, start_ns=start + 2_000 * MILLISECOND_NS)
    told = export(failed, retried)["partialSuccess"]
    assert told == {"errorMessage": AHEAD.format("2 items")}
    assert UnplacedCall.objects.count() == 2
    AgentRun.objects.update(settles_at=clock.now())
    assert settle_runs() == 1
    attempts = Event.objects.filter(project_id=project.pk).order_by("attempt")
    assert [(event.kind, event.attempt) for event in attempts] == [
        ("provider_error", 1),
        ("succeeded", 2),
    ]
    assert minutes("repaired")[0][1] == 1
    run = AgentRun.objects.get()
    assert (run.calls, run.recovered) == (2, 1)
    assert run.ended_at <= clock.now()


def test_what_a_purge_takes_out_is_taken_from_the_minute_of_the_arrival(
    post: Post, project: Project
) -> None:
    sent = (clock.now() + 2 * HOUR).isoformat()
    post([succeeded(occurred_at=sent, correlation_id="gone")])
    assert minutes()
    purge_correlation(project.pk, "gone")
    assert minutes() == []


def test_the_data_page_counts_both_and_says_what_to_do(
    client: Client, post: Post, project: Project
) -> None:
    now = clock.now()
    times = (now + 2 * HOUR, now - HOUR, now - 2 * HOUR)
    post([wire_event(occurred_at=at.isoformat()) for at in times])
    client.force_login(make_member(project))
    page = client.get("/ingest/").content.decode()
    assert AHEAD.format("1 item") in page
    assert LATE.format("2 items") in page

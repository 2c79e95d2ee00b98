"""The ingestion page, read as HTML."""

from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.key_counts import note_items
from diagnostics.ingest.recording import record
from diagnostics.ingest.rejects import allowance, note_refusals, refuse_body
from diagnostics.ingest.sources import lag_seconds, sources_of
from diagnostics.store.models import Event, Heartbeat, OutboxMessage
from tests.console import Role, make_member
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db
URL = "/ingest/"


@pytest.fixture
def project() -> Project:
    allowance.clear()
    return Project.objects.create(slug="p", name="Planner")


@pytest.fixture
def client(client: Client, project: Project) -> Client:
    client.force_login(make_member(project))
    return client


def page(client: Client) -> str:
    answer = client.get(URL)
    assert answer.status_code == 200
    return answer.text


def send(project: Project, source: str | None, hours_ago: float) -> None:
    at = clock.now() - timedelta(hours=hours_ago)
    record(project.pk, [make_event(source=source, occurred_at=at.isoformat())])


def test_sources_are_counted_and_the_silent_ones_come_first(project: Project) -> None:
    for _ in range(3):
        send(project, "busy", 0)
    send(project, "gone", 30)
    send(project, None, 0)
    gone, busy, unknown = sources_of(project.pk, clock.now())
    assert (gone.name, gone.is_silent, gone.events) == ("gone", True, 0)
    assert (busy.name, busy.is_silent, busy.events) == ("busy", False, 3)
    assert busy.invalid == 3
    assert (unknown.name, unknown.events) == (None, 1)
    assert gone.last_hour <= clock.now() - timedelta(hours=29)


def test_lag_is_how_long_most_events_were_on_their_way(project: Project) -> None:
    assert lag_seconds(project.pk) is None
    for _ in range(30):
        send(project, "a", 0)
    send(project, "late", 5)
    send(project, "ahead", -0.01)
    lag = lag_seconds(project.pk)
    assert lag is not None
    assert 0 <= lag < 60


def test_the_page_shows_keys_schemas_and_what_was_refused(client: Client, project: Project) -> None:
    key = issue_key(project, "support bot", [Scope.INGEST]).row
    refused = refuse_body(b'{"a": <b>', "not_json", "expected value")
    assert note_refusals(key, "/api/v1/events", 400, [refused]) == 1
    register_schema(project, "planner", {"title": "Plan <i>"}, "3")
    shown = page(client)
    assert "support bot" in shown
    assert f"fs_{key.key_id}_" in shown
    assert "expected value" in shown
    assert "&lt;b&gt;" in shown
    assert "Plan &lt;i&gt;" in shown


def test_sources_of_which_all_was_refused_are_listed_too(client: Client, project: Project) -> None:
    key = issue_key(project, "bot", [Scope.INGEST]).row
    send(project, "good bot", 0)
    note_items(key, {("broken bot", "invalid"): 7, ("", "rejected"): 1234})
    shown = page(client)
    assert shown.count("</svg>rejected</span>") == 2
    assert "broken bot" in shown
    assert "1,234" in shown


def test_a_whole_request_can_be_copied_as_a_command(client: Client, project: Project) -> None:
    key = issue_key(project, "bot", [Scope.INGEST]).row
    bodies = (b'[{"a": 1}\nEND\nid', b"\x1f\x8b\x00\xff", b"[" * 3_000)
    refusals = [refuse_body(body, "not_json", "expected value") for body in bodies]
    assert note_refusals(key, "/api/v1/events", 400, refusals) == 3
    shown = page(client)
    assert "&lt;&lt;&#x27;END_1&#x27;" in shown or "&lt;&lt;'END_1'" in shown
    assert shown.count("--data-binary @-") == 2
    assert shown.count("Truncated and redacted") == 1


def test_the_page_says_which_part_is_not_at_work(client: Client, project: Project) -> None:
    assert page(client).count("never seen") == 2
    now = clock.now()
    Heartbeat.objects.create(name="worker", at=now)
    Heartbeat.objects.create(name="beat", at=now - timedelta(minutes=2))
    OutboxMessage.objects.create(task="t", queue="fold", available_at=now - timedelta(minutes=5))
    shown = page(client)
    assert "running" in shown
    assert "silent for 12" in shown
    assert "oldest waiting 30" in shown


def test_an_empty_page_shows_how_to_send(client: Client) -> None:
    shown = page(client)
    assert "No events in the last 7 days" in shown
    assert 'href="/setup/"' in shown
    assert "manage.py create_key" not in shown


def test_an_operator_sends_a_test_event(client: Client, project: Project) -> None:
    answer = client.post("/ingest/test/", follow=True)
    assert "Test event created" in answer.text
    event = Event.objects.get(project=project)
    assert (event.node, event.source) == ("test", "console")
    assert event.correlation_id in answer.text


def test_a_viewer_looks_but_does_not_send(project: Project) -> None:
    viewer = Client()
    viewer.force_login(make_member(project, "vera", Role.VIEWER))
    assert "Send test event" not in page(viewer)
    assert viewer.post("/ingest/test/").status_code == 403
    assert not Event.objects.exists()


def test_strangers_sign_in_first_and_see_no_other_project(client: Client) -> None:
    other = Project.objects.create(slug="o", name="O")
    issue_key(other, "their key", [Scope.INGEST])
    send(other, "their bot", 0)
    shown = page(client)
    assert "their key" not in shown
    assert "their bot" not in shown
    assert Client().get(URL).status_code == 302


def test_the_number_of_queries_does_not_grow(
    client: Client, project: Project, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(10):
        send(project, f"bot-{number}", 0)
        issue_key(project, f"key {number}", [Scope.INGEST])
    with django_assert_max_num_queries(21):
        client.get(URL)


def test_what_telemetry_left_out_is_said_with_what_helps(client: Client, project: Project) -> None:
    assert "Not understood" not in page(client)
    issue_key(project, "agent", [Scope.INGEST])
    key = ApiKey.objects.get()
    note_items(key, {("", "not_understood"): 3})
    text = page(client)
    assert "Not understood" in text
    assert "Set <code>gen_ai.operation.name</code>" in text

"""Quotas over HTTP: 429 with Retry-After, previews sampled, every event counted."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from diagnostics.accounts import authentication
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest import quotas
from diagnostics.ingest.models import KeyBucket, Quota
from diagnostics.ingest.models import Usage as UsageRow
from diagnostics.store.models import Event, EventPayload
from tests.console import Role, make_member
from tests.diagnostics.builders import wire_event

pytestmark = pytest.mark.django_db
URL = "/api/v1/events"
Post = Callable[..., Any]


@pytest.fixture(autouse=True)
def _fresh_process() -> Iterator[None]:
    forget()
    yield
    forget()


def forget() -> None:
    """Be another process: nothing is held in memory."""
    quotas.leases.clear()
    authentication.forget_all()


@pytest.fixture
def key(project: Project) -> str:
    return issue_key(project, "k", [Scope.INGEST, Scope.READ]).text


@pytest.fixture
def post(key: str) -> Post:
    def send(count: int = 1, with_key: str = key) -> Any:
        body = json.dumps([wire_event() for _ in range(count)]).encode()
        headers = {"Authorization": f"Bearer {with_key}"}
        return Client().post(URL, body, content_type="application/json", headers=headers)

    return send


def test_a_key_that_sends_too_fast_is_told_to_wait(project: Project, post: Post) -> None:
    Quota.objects.create(project=project, key_events_per_second=1, key_burst_events=1000)
    assert post(999).status_code == 200
    answer = post(500)
    assert (answer.status_code, answer.json()["code"]) == (429, "quota_rate")
    assert 1 <= int(answer["Retry-After"]) <= 60
    assert Event.objects.count() == 999


def test_a_bucket_is_shared_by_all_processes_and_no_other_key(project: Project, post: Post) -> None:
    Quota.objects.create(project=project, key_events_per_second=1, key_burst_events=1000)
    assert post(990).status_code == 200
    forget()
    assert post(500).status_code == 429
    other = issue_key(project, "other", [Scope.INGEST]).text
    assert post(500, with_key=other).status_code == 200


def test_a_spent_day_refuses_every_key_of_the_project(project: Project, post: Post) -> None:
    Quota.objects.create(project=project, events_per_day=3)
    assert post(3).status_code == 200
    answer = post()
    assert (answer.status_code, answer.json()["code"]) == (429, "quota_day")
    other = issue_key(project, "other", [Scope.INGEST]).text
    assert post(with_key=other).status_code == 429
    elsewhere = Project.objects.create(slug="q", name="Q")
    free = issue_key(elsewhere, "k", [Scope.INGEST]).text
    assert post(with_key=free).status_code == 200


def test_above_the_spike_bound_every_event_counts_and_a_share_of_previews_is_kept(
    project: Project, post: Post, key: str
) -> None:
    Quota.objects.create(project=project, spike_events_per_minute=100)
    assert post(100).json()["preview_share"] == 1.0
    answer = post(400).json()
    assert answer["accepted"] == 400
    assert 0.1 <= answer["preview_share"] < 0.5
    forget()
    post()
    assert Event.objects.count() == 501
    assert EventPayload.objects.count() == 501
    gone = EventPayload.objects.filter(sampled_out=True)
    assert gone.count() > 100
    assert set(gone.values_list("raw_output_preview", flat=True)) == {None}
    kept = EventPayload.objects.filter(sampled_out=False)
    assert set(kept.values_list("raw_output_preview", flat=True)) == {"not json"}
    status = Client().get("/api/v1/ingest", headers={"Authorization": f"Bearer {key}"}).json()
    assert status["preview_share"] < 1.0
    assert status["today"]["events"] >= 501


def test_the_events_of_today_are_those_that_were_sent_not_those_reserved(
    client: Client, project: Project, post: Post, key: str
) -> None:
    Quota.objects.create(project=project, key_events_per_second=1000, key_burst_events=8000)
    for count in (3, 4):
        post(count)
        forget()
    assert UsageRow.objects.get().events > 7
    status = Client().get("/api/v1/ingest", headers={"Authorization": f"Bearer {key}"}).json()
    assert (status["today"]["events"], status["events_this_month"]) == (7, 7)
    client.force_login(make_member(project, role=Role.ADMIN))
    page = client.get("/settings/quotas/").content.decode()
    assert '· today</th><td class="num">7</td>' in page


def test_items_that_were_not_new_count_as_sent_too(project: Project, key: str) -> None:
    event = wire_event()
    body = json.dumps([event, event, {**event, "attempt": 2}, {"name": "nothing"}])
    headers = {"Authorization": f"Bearer {key}"}
    Client().post(URL, body, content_type="application/json", headers=headers)
    assert UsageRow.objects.get().sent == 4


def test_no_limit_asks_nobody(project: Project, post: Post, settings: Any) -> None:
    settings.FAILSOFT_KEY_EVENTS_PER_SECOND = 0
    settings.FAILSOFT_SPIKE_EVENTS_PER_MINUTE = 0
    assert post().status_code == 200
    assert not KeyBucket.objects.exists()
    assert (UsageRow.objects.get().events, UsageRow.objects.get().sent) == (0, 1)


def test_most_requests_do_not_touch_the_shared_rows(project: Project, post: Post) -> None:
    post()
    tokens = KeyBucket.objects.get().tokens
    for _ in range(5):
        post(5)
    assert KeyBucket.objects.get().tokens == tokens


def test_what_was_refused_and_sampled_out_is_counted(project: Project, post: Post) -> None:
    Quota.objects.create(project=project, events_per_day=3)
    post(3)
    post(7)
    forget()
    post(2)
    assert UsageRow.objects.get().refused == 9

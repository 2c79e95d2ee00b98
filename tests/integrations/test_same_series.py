"""The same runs, told by spans of two kinds and by posted events, are the same series."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client as Browser
from django.urls import reverse
from pytest_django.live_server_helper import LiveServer

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.store.aggregation import fold
from diagnostics.store.partitions import ensure_partitions
from failsoft.events import EventKind
from tests.diagnostics.builders import degraded, succeeded, wire_event
from tests.integrations.clients import CELLS, REPLIES, Client, clients_of, running_client
from tests.integrations.environments import prepare
from tests.integrations.families.schema import PLAN
from tests.integrations.provider import MODEL, Provider, running_provider
from tests.integrations.relay import running_relay
from tests.integrations.test_families import CHOSEN, settle

pytestmark = [pytest.mark.integrations, pytest.mark.django_db(transaction=True)]
TELLING = {"openinference": "openai", "pydantic_ai": "prompted"}
# What the calls of 14 runs were answered with.
RUNS = (
    *(("good",) for _ in range(6)),
    *(
        ("not_json", "good"),
        ("not_json", "good"),
        ("schema", "good"),
        ("schema", "not_json", "good"),
    ),
    *(("not_json", "not_json", "not_json"), ("schema", "schema", "truncated")),
    *(("not_json", "broken"), ("broken",)),
)
# Nodes are named as each client names them; when it was judged, and what retries cost, may differ.
LEFT_OUT = {"node", "judged_at", "retry_seconds", "retry_tokens"}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


def make_project(slug: str) -> tuple[Project, str]:
    project = Project.objects.create(slug=slug, name=slug)
    return project, issue_key(project, "agent", [Scope.INGEST, Scope.READ]).text


@pytest.mark.parametrize("family", [name for name in TELLING if name in CHOSEN])
def test_14_runs_told_by_spans_and_posted_give_the_same_series(
    family: str, transactional_db: None, live_server: LiveServer, provider: Provider
) -> None:
    ensure_partitions()
    (client,) = (one for one in clients_of(family) if one.name == TELLING[family])
    posting, told = make_project("posting"), make_project("telling")
    prepare(family)
    post_runs(posting[1])
    tell_runs(client, *told, live_server.url, provider)
    while fold():
        pass
    expected = series_of(posting[1])
    assert (expected["runs"], expected["degraded"], expected["first_pass_rate"]) == (14, 4, 6 / 14)
    assert series_of(told[1]) == expected


def tell_runs(client: Client, project: Project, key: str, url: str, provider: Provider) -> None:
    """Let a real client make the runs, one after the other."""
    register_schema(project, client.node, PLAN, "3")
    with running_relay(url) as endpoint, running_client(client, endpoint, key) as running:
        for replies in RUNS:
            provider.play([dict(REPLIES[name]) for name in replies], is_tool=False)
            running.play("good", provider.url, {**CELLS["good"], "replies": replies})
    settle()


def post_runs(key: str) -> None:
    """Post the events of the same runs, as an agent that knows all of it does."""
    at = clock.now() - timedelta(minutes=1)
    items = [item for replies in RUNS for item in events_of(replies, at.isoformat())]
    answer = Browser().post(
        reverse("api_events"),
        items,
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert answer.json()["accepted"] == len(items), answer.json()["results"]


def events_of(replies: tuple[str, ...], at: str) -> Iterator[dict[str, Any]]:
    common = {"correlation_id": uuid4().hex, "provider": "openai", "model": MODEL}
    for attempt, name in enumerate(replies, 1):
        true = REPLIES[name]["event"]
        told = {**common, "event_id": str(uuid4()), "occurred_at": at, "attempt": attempt}
        told["name"] = f"graph.chat.{true['kind']}"
        if true["kind"] == EventKind.PARSE_INVALID:
            yield wire_event(**told, parse_error_type=true["error"])
        elif true["kind"] == EventKind.PROVIDER_ERROR:
            yield succeeded(**told, attributes={"call_error_type": true["call_error"]})
        else:
            yield succeeded(**told)
    if replies[-1] != "good":
        reason = "provider_failed" if replies[-1] == "broken" else "chat_parse_failed"
        ended = {"attempts": len(replies), "reason": reason}
        yield degraded(**common, **ended, occurred_at=at, name="graph.chat.degraded")


def series_of(key: str) -> dict[str, Any]:
    answer = Browser().get(reverse("api_series"), headers={"Authorization": f"Bearer {key}"})
    (series,) = answer.json()["items"]
    return {name: value for name, value in series.items() if name not in LEFT_OUT}

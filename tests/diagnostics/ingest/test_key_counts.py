"""What each key sent, by minute and outcome; counting never stands in the way."""

import json
from datetime import timedelta
from time import perf_counter
from typing import Any
from uuid import uuid4

import pytest
from django.db import InterfaceError, connection
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import IssuedKey, issue_key
from diagnostics.ingest import key_counts
from diagnostics.ingest.key_counts import (
    MOST_SOURCES,
    Counts,
    ItemCounts,
    count_items,
    forget_old_counts,
    note_items,
    tallies_of,
)
from diagnostics.ingest.models import KeyMinute

pytestmark = pytest.mark.django_db
ALWAYS = timedelta(days=1)


@pytest.fixture
def key() -> IssuedKey:
    project = Project.objects.create(slug="mine", name="Mine")
    return issue_key(project, "agent", list(Scope))


def post(key: IssuedKey, body: object) -> Any:
    headers = {"Authorization": f"Bearer {key.text}"}
    text = body if isinstance(body, str) else json.dumps(body)
    return Client().post("/api/v1/events", text, content_type="application/json", headers=headers)


def an_event(**fields: Any) -> dict[str, Any]:
    return {
        "event_id": str(uuid4()),
        "name": "graph.plan.succeeded",
        "occurred_at": clock.now().isoformat(),
        "correlation_id": "run-1",
        "cycle": 1,
        "attempt": 1,
        "source": "planner-a",
        **fields,
    }


def tally(key: IssuedKey) -> ItemCounts:
    since = clock.now() - ALWAYS
    found = tallies_of(key.row.project_id, "api_key", since)
    return found.get(key.row.pk, ItemCounts())


def test_every_outcome_is_counted_by_key_and_source(key: IssuedKey) -> None:
    good = an_event()
    post(key, [good, an_event()])
    post(key, [good, {**good, "cycle": 2}, {"name": "nonsense"}])
    post(key, "{ this is no batch")
    assert tally(key) == ItemCounts(2, 1, 1, 1, 1)
    by_source = tallies_of(key.row.project_id, "source", clock.now() - ALWAYS)
    assert by_source["planner-a"] == ItemCounts(2, 1, 1)
    assert by_source[""] == ItemCounts(invalid=1, rejected=1)


def test_a_minute_is_one_row_however_many_requests_there_are(key: IssuedKey) -> None:
    for _ in range(5):
        note_items(key.row, {("a", "stored"): 2})
    minutes = set(KeyMinute.objects.values_list("minute", flat=True))
    assert KeyMinute.objects.count() == len(minutes)
    assert tally(key).stored == 10


def test_many_sources_fill_no_table(key: IssuedKey) -> None:
    words = [f"s{n}" for n in range(MOST_SOURCES + 1)]
    note_items(key.row, count_items((word, "created") for word in words))
    assert KeyMinute.objects.get().source == ""
    assert tally(key).stored == len(words)


def test_a_secret_in_a_source_is_masked(key: IssuedKey) -> None:
    secret = "ghp_" + uuid4().hex + "Ab12"
    note_items(key.row, {(f"agent {secret}", "stored"): 1})
    assert secret not in KeyMinute.objects.get().source


def test_a_lost_connection_loses_counts_and_no_answer(
    key: IssuedKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object) -> None:
        raise InterfaceError("connection already closed")

    monkeypatch.setattr(key_counts, "execute_prepared", lose)
    note_items(key.row, {("a", "stored"): 1})
    assert not KeyMinute.objects.exists()


def test_old_counts_go(key: IssuedKey) -> None:
    note_items(key.row, {("a", "stored"): 1})
    assert forget_old_counts() == 0
    KeyMinute.objects.update(minute=clock.now() - timedelta(days=34))
    assert forget_old_counts() == 1


def test_counting_costs_less_than_a_few_milliseconds(key: IssuedKey) -> None:
    note_items(key.row, {("a", "stored"): 1})
    began = perf_counter()
    for _ in range(50):
        note_items(key.row, {("a", "stored"): 1_000})
    assert (perf_counter() - began) / 50 < 0.02


def test_counting_is_one_statement_that_is_planned_once(key: IssuedKey) -> None:
    for _ in range(3):
        note_items(key.row, {("a", "stored"): 1, ("b", "invalid"): 2})
    assert connection.needs_rollback is False
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT generic_plans + custom_plans >= 3 FROM pg_prepared_statements"
            " WHERE statement LIKE '%%INTO diagnostics_keyminute%%'"
        )
        assert cursor.fetchall() == [(True,)]
    assert KeyMinute.objects.count() == 2


def test_a_process_with_a_pool_gathers_and_then_writes_once(
    key: IssuedKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[int, int, Counts]] = []
    monkeypatch.setattr(key_counts, "_write", lambda *told: written.append(told))
    monkeypatch.setattr(key_counts, "GATHER_SECONDS", 3600.0)
    gathered = key_counts._Gathered()
    gathered.add(1, 2, {("a", "stored"): 1})
    gathered.add(1, 2, {("a", "stored"): 2, ("b", "invalid"): 1})
    gathered.add(1, 3, {("a", "stored"): 5})
    assert written == []
    gathered.write()
    gathered.write()
    assert written == [
        (1, 2, {("a", "stored"): 3, ("b", "invalid"): 1}),
        (1, 3, {("a", "stored"): 5}),
    ]

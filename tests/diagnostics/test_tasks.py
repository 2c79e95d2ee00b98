"""Upkeep: heartbeats, days made ahead, old identities forgotten."""

from contextlib import closing
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock, tasks
from diagnostics.accounts.models import Project
from diagnostics.ingest.recording import record
from diagnostics.store.models import EventIdentity, Heartbeat
from diagnostics.store.partitions import are_days_ready, ensure_partitions
from diagnostics.store.retention import drop_old
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db


def test_a_heartbeat_tells_of_beat_and_worker_by_the_database_clock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL failsoft.clock_shift = '10 minutes'")
    tasks.beat_heartbeat()
    tasks.beat_heartbeat()
    beats = Heartbeat.objects.in_bulk()
    assert set(beats) == {"beat", "worker"}
    assert abs(clock.now() - beats["beat"].at) < timedelta(minutes=1)


def test_a_heartbeat_marks_the_queues_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    marked: list[str] = []
    monkeypatch.setattr(tasks, "send_mark", marked.append)
    tasks.beat_heartbeat(["plan", "steps"])
    assert marked == ["plan", "steps"]


def test_a_heartbeat_is_one_statement(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    at = clock.now()
    with django_assert_num_queries(1):
        Heartbeat.note(at, "beat", "worker")


def test_the_first_heartbeat_makes_the_days_ready() -> None:
    tasks.beat_heartbeat()
    assert are_days_ready()


def test_identities_are_forgotten_after_eight_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "PURGE_BATCH", 2)
    project = Project.objects.create(slug="p", name="P")
    events = [make_event() for _ in range(6)]
    record(project.pk, events)
    old = [event.event_id for event in events[:5]]
    days = timedelta(days=8, minutes=1)
    EventIdentity.objects.filter(event_id__in=old).update(received_at=clock.now() - days)
    tasks.maintain_partitions()
    assert EventIdentity.objects.get().event_id == events[5].event_id


def test_upkeep_reports_what_it_did() -> None:
    tasks.maintain_partitions()
    assert tasks.maintain_partitions() == 0


@pytest.mark.django_db(transaction=True)
def test_a_table_that_a_reader_holds_leaves_the_rest_of_the_upkeep_its_turn() -> None:
    old = clock.now() - timedelta(days=400)
    ensure_partitions(old.date(), old.date())
    Session.objects.create(session_key="s", session_data="", expire_date=old)
    name = f"diagnostics_event_d{old:%Y%m%d}"
    with closing(connection.copy()) as reader, reader.cursor() as cursor:
        cursor.execute(f"BEGIN; SELECT FROM {name}")
        tasks.maintain_partitions()
    assert not Session.objects.exists()
    drop_old()

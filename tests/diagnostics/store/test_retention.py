"""What is old is dropped whole, table by table; counts per day and running totals stay."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from config.checks import check_retention
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.ingest.recording import record
from diagnostics.metrics import read_counts
from diagnostics.store import aggregation, retention
from diagnostics.store.models import Event, EventPayload
from diagnostics.store.partitions import ensure_partitions
from diagnostics.store.retention import drop_old, index_words, storage_sizes
from failsoft.events import PostedEvent as WireEvent
from tests.diagnostics.builders import wire_event

pytestmark = pytest.mark.django_db


def post(project: Project, *days_ago: float) -> None:
    now = clock.now()
    for days in days_ago:
        at = now - timedelta(days=days)
        ensure_partitions(at.date(), at.date())
        record(project.pk, [WireEvent.model_validate(wire_event(occurred_at=at.isoformat()))])
    aggregation.fold()


def rows(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM diagnostics_{table}")  # noqa: S608 - our own name
        return int(cursor.fetchone()[0])


def test_details_go_before_events_and_days_of_counts_stay(project: Project) -> None:
    post(project, 0, 29, 40, 89, 100)
    dropped = drop_old()
    assert (Event.objects.count(), EventPayload.objects.count()) == (4, 2)
    assert any(name.startswith("diagnostics_event_d") for name in dropped)
    assert rows("rollup_day") == 5
    assert rows("rollup_hour") == 5


def test_counts_of_hours_are_dropped_after_thirteen_months(project: Project) -> None:
    post(project, 1, 460)
    drop_old()
    assert (rows("rollup_hour"), rows("rollup_day")) == (1, 2)
    assert rows("rollup_hour_by_version") == rows("group_hour") == 1
    assert rows("rollup_day_by_version") == rows("group_day") == 1


def test_minutes_are_dropped_after_two_days(project: Project) -> None:
    post(project, 1)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL failsoft.clock_shift = '3 days'")
    assert rows("rollup_minute") == 1
    drop_old()
    assert rows("rollup_minute") == 0


def test_what_fell_into_no_day_is_deleted_too(project: Project) -> None:
    at = clock.now() - timedelta(days=2000)
    record(project.pk, [WireEvent.model_validate(wire_event(occurred_at=at.isoformat()))])
    assert Event.objects.count() == 1
    drop_old()
    assert Event.objects.count() == EventPayload.objects.count() == 0


def test_counters_never_go_down(project: Project) -> None:
    post(project, 0, 100)
    before = read_counts(None)
    drop_old()
    assert read_counts(None) == before
    assert before["fake", "fake-1"]["events"] == 2


def test_dropping_twice_drops_nothing_more(project: Project) -> None:
    post(project, 100)
    assert drop_old()
    assert drop_old() == []


def test_the_day_that_is_half_over_its_time_is_kept_whole(project: Project, settings: Any) -> None:
    settings.FAILSOFT_KEEP_EVENT_DAYS = 10
    now = clock.now().astimezone(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    edge = (now - midnight).total_seconds() / 86_400
    post(project, 10 + edge - 1e-6, 11 + edge)
    drop_old()
    assert Event.objects.count() == 1


def test_sizes_are_told_by_table_with_all_its_partitions(project: Project) -> None:
    post(project, 0)
    sizes = {size.table: size for size in storage_sizes()}
    assert sizes["diagnostics_event"].bytes > 0
    assert sizes["diagnostics_event"].partitions >= 1
    assert sizes["diagnostics_rollup_day"].partitions == 0
    assert not any("_d20" in name for name in sizes)
    text = Client().get("/metrics").text
    assert 'failsoft_storage_bytes{table="diagnostics_event"}' in text


def test_a_retention_that_contradicts_itself_is_refused(settings: Any) -> None:
    assert check_retention(None) == []
    settings.FAILSOFT_KEEP_EVENT_DAYS = 20
    (found,) = check_retention(None)
    assert found.id == "config.E005"


def word_indexes() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(retention.INDEXED, [])
        return {name for name, is_valid in cursor.fetchall() if is_valid}


def day_of(ago: int, table: str = "diagnostics_event") -> str:
    """Give the partition of a day before today."""
    return f"{table}_d{clock.now().astimezone(UTC) - timedelta(days=ago):%Y%m%d}"


def names_of(*days: int) -> set[str]:
    """Give the indexes of days before today."""
    tables = ("diagnostics_event", "diagnostics_event_payload")
    return {f"{day_of(ago, table)}_words" for table in tables for ago in days}


@pytest.fixture
def _no_word_indexes() -> Iterator[None]:
    """Leave none behind: this database is not rolled back."""
    yield
    with connection.cursor() as cursor:
        for name in word_indexes():
            cursor.execute(f"DROP INDEX {name}")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_no_word_indexes")
def test_words_of_days_that_are_over_are_indexed_for_as_long_as_they_are_searched() -> None:
    ensure_partitions()
    assert set(index_words()) == word_indexes() == names_of(*range(1, 9))
    assert index_words() == []
    with connection.cursor() as cursor:
        cursor.execute("SET failsoft.clock_shift = '1 day'")
        try:
            ensure_partitions()
            assert set(index_words()) == names_of(1)
            assert word_indexes() == names_of(*range(1, 9))
        finally:
            cursor.execute("RESET failsoft.clock_shift")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_no_word_indexes")
def test_an_index_that_was_not_completed_is_made_again() -> None:
    ensure_partitions()
    index_words()
    (broken, *_) = names_of(3)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [broken]
        )
    assert broken not in word_indexes()
    assert index_words() == [broken]
    assert broken in word_indexes()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_no_word_indexes")
def test_one_process_at_a_time_indexes_words() -> None:
    ensure_partitions()
    with closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [retention.WORDS_LOCK_KEY])
        assert index_words() == []
        cursor.execute("SELECT pg_advisory_unlock(%s)", [retention.WORDS_LOCK_KEY])
    assert index_words()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_no_word_indexes")
def test_words_are_indexed_day_by_day_where_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_partitions()
    times = iter(range(100))
    monkeypatch.setattr(retention, "monotonic", lambda: next(times))
    monkeypatch.setattr(retention, "MOST_SECONDS", 2.5)
    built = index_words()
    assert len(built) == 2
    assert set(built) < names_of(1, 2)


def test_a_day_that_is_too_large_to_be_indexed_in_time_is_left_out(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    post(project, 2)
    monkeypatch.setattr(retention, "MOST_INDEXED", 0)
    monkeypatch.setattr(retention, "_write", lambda text, *names: pytest.fail(f"{text} {names}"))
    monkeypatch.setattr(retention, "WORDS", {"diagnostics_event": "(node)"})
    monkeypatch.setattr(retention, "_partitions", lambda _: [(day_of(2), clock.now())])
    assert index_words() == []


def test_without_the_extension_no_words_are_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "TRIGRAMS", "CREATE EXTENSION no_such_extension")
    with transaction.atomic():
        assert index_words() == []
    assert word_indexes() == set()

"""Days are made ahead; a row that came too early is moved to its day."""

from datetime import UTC, date, timedelta

import pytest
from django.db import connection

from diagnostics import clock
from diagnostics.models import Event, Project
from diagnostics.partitions import (
    TABLES,
    are_days_ready,
    ensure_partitions,
    partition_name,
)
from diagnostics.recording import record
from tests.diagnostics.builders import AT, make_event

pytestmark = pytest.mark.django_db
DAY = AT.date()


def count_in(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ONLY {table}")  # noqa: S608 - our own name
        return int(cursor.fetchone()[0])


def test_a_partition_is_named_after_its_day() -> None:
    assert partition_name(TABLES[0], date(2026, 11, 1)) == "diagnostics_event_d20261101"


def test_days_are_created_once_for_both_tables() -> None:
    first = date(2030, 2, 27)
    created = ensure_partitions(first, first + timedelta(days=2))
    assert len(created) == 6
    assert ensure_partitions(first, first + timedelta(days=2)) == []


def test_by_default_a_fortnight_back_and_three_days_ahead_exist() -> None:
    ensure_partitions()
    assert are_days_ready()
    today = clock.now().astimezone(UTC).date()
    assert (
        ensure_partitions(today - timedelta(days=14), today + timedelta(days=3)) == []
    )


def test_a_row_of_a_day_not_made_yet_is_kept_and_moved_later() -> None:
    project = Project.objects.create(slug="p", name="P")
    event = make_event()
    record(project.pk, [event])
    ensure_partitions(DAY, DAY)
    for table in TABLES:
        assert count_in(partition_name(table, DAY)) == 1
        assert count_in(f"{table}_default") == 0
    assert Event.objects.get(project=project).event_id == event.event_id


def test_a_duplicate_is_recognised_after_the_move() -> None:
    project = Project.objects.create(slug="p", name="P")
    event = make_event()
    record(project.pk, [event])
    ensure_partitions(DAY, DAY)
    assert record(project.pk, [event])[0].status == "duplicate"

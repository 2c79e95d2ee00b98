"""Days and months are made ahead; a row that came too early is moved to its partition."""

from datetime import UTC, date, timedelta

import pytest
from django.db import connection

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.ingest.recording import record
from diagnostics.store import aggregation
from diagnostics.store.models import Event
from diagnostics.store.partitions import (
    TABLES,
    PartitionPeriod,
    Unit,
    are_days_ready,
    ensure_partitions,
    partition_name,
    period_of,
    periods,
    read_name,
)
from tests.diagnostics.builders import AT, make_event

pytestmark = pytest.mark.django_db
DAY = AT.date()
EVENTS = TABLES[:2]


def count_in(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM ONLY {table}")  # noqa: S608 - our own name
        return int(cursor.fetchone()[0])


def test_a_partition_is_named_after_its_period() -> None:
    day = PartitionPeriod(Unit.DAY, date(2026, 11, 1))
    month = period_of(Unit.MONTH, date(2026, 11, 7))
    assert partition_name(TABLES[0], day) == "diagnostics_event_d20261101"
    assert partition_name(TABLES[3], month) == "diagnostics_rollup_hour_m202611"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("diagnostics_event_d20261130", ("diagnostics_event", "2026-12-01")),
        ("a_m202612", ("a", "2027-01-01")),
        ("a_d20261301", None),
        ("diagnostics_event_default", None),
    ],
)
def test_a_name_tells_where_its_period_ends(name: str, expected: tuple[str, str] | None) -> None:
    found = read_name(name)
    told = found and (found[0], found[1].end.date().isoformat())
    assert told == expected


def test_months_go_on_over_the_end_of_a_year() -> None:
    found = list(periods(Unit.MONTH, date(2026, 11, 30), date(2027, 1, 1)))
    assert [period.suffix for period in found] == ["m202611", "m202612", "m202701"]


def test_periods_are_created_once_for_every_table() -> None:
    first = date(2030, 2, 27)
    created = ensure_partitions(first, first + timedelta(days=2))
    days = [name for name in created if "_d2030" in name]
    assert len(days) == 3 * len([t for t in TABLES if t.unit is Unit.DAY])
    assert len(created) - len(days) == 2 * len([t for t in TABLES if t.unit is Unit.MONTH])
    assert ensure_partitions(first, first + timedelta(days=2)) == []


def test_by_default_a_fortnight_back_and_three_days_ahead_exist() -> None:
    ensure_partitions()
    assert are_days_ready()
    today = clock.now().astimezone(UTC).date()
    assert ensure_partitions(today - timedelta(days=14), today + timedelta(days=3)) == []


def test_a_row_of_a_day_not_made_yet_is_kept_and_moved_later() -> None:
    project = Project.objects.create(slug="p", name="P")
    event = make_event()
    record(project.pk, [event])
    aggregation.fold()
    ensure_partitions(DAY, DAY)
    for table in EVENTS:
        assert count_in(partition_name(table, period_of(Unit.DAY, DAY))) == 1
        assert count_in(f"{table.name}_default") == 0
    for table in TABLES[3:]:
        assert count_in(partition_name(table, period_of(Unit.MONTH, DAY))) == 1
    assert Event.objects.get(project=project).event_id == event.event_id


def test_a_duplicate_is_recognised_after_the_move() -> None:
    project = Project.objects.create(slug="p", name="P")
    event = make_event()
    record(project.pk, [event])
    ensure_partitions(DAY, DAY)
    assert record(project.pk, [event])[0].status == "duplicate"

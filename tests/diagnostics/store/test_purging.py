"""A purge deletes what it was asked for, and the counts add up to what is left."""

import pytest
from django.db import connection

from diagnostics.accounts.models import Project
from diagnostics.failures.models import FailureGroup
from diagnostics.ingest.recording import record
from diagnostics.metrics import read_counts
from diagnostics.purge import purge_correlation, purge_marked, purge_project
from diagnostics.store import aggregation, runs
from diagnostics.store.models import Event, EventIdentity, EventPayload, Series
from tests.diagnostics.store.test_folding import chance_events, counted, recount

pytestmark = pytest.mark.django_db
GRAINS = ("minute", "hour", "day", "hour_by_version", "day_by_version")


def fill(project: Project) -> None:
    events = chance_events(21, 120)
    mine = [event.model_copy(update={"correlation_id": "gone"}) for event in events[:50]]
    record(project.pk, [*mine, *events[50:]])


def test_a_correlation_id_is_deleted_and_rollups_equal_the_rest(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "BATCH", 7)
    fill(project)
    before = read_counts(None)
    assert purge_correlation(project.pk, "gone") == 50
    assert not Event.objects.filter(correlation_id="gone").exists()
    expected = recount()
    assert expected["events"] == 70
    for grain in GRAINS:
        assert counted(grain) == expected, grain
    left = EventPayload.objects.filter(fingerprint__isnull=False).count()
    assert sum(FailureGroup.objects.values_list("seen", flat=True)) == left
    assert not FailureGroup.objects.filter(seen__lte=0).exists()
    assert read_counts(None) == before


def test_a_purged_event_does_not_come_back_when_it_is_sent_again(project: Project) -> None:
    (event,) = chance_events(3, 1)
    record(project.pk, [event])
    assert purge_correlation(project.pk, event.correlation_id) == 1
    assert record(project.pk, [event])[0].status == "duplicate"
    assert not Event.objects.exists()


def test_what_carries_a_mark_goes_as_if_it_had_never_been(project: Project) -> None:
    fill(project)
    some = Event.objects.first()
    assert some is not None
    assert purge_marked(project.pk, some.event_id.hex[-12:]) == 1
    assert not EventIdentity.objects.filter(event_id=some.event_id).exists()
    assert Event.objects.count() == 119


def test_a_project_is_emptied_and_another_is_not_touched(project: Project) -> None:
    other = Project.objects.create(slug="o", name="O")
    fill(project)
    record(other.pk, chance_events(4, 10))
    aggregation.fold()
    assert purge_project(project) == 120
    assert set(Event.objects.values_list("project_id", flat=True)) == {other.pk}
    assert set(Series.objects.values_list("project_id", flat=True)) == {other.pk}
    assert not FailureGroup.objects.filter(project=project).exists()
    for grain in (*GRAINS, "total"):
        assert counted(grain) == recount(), grain
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM diagnostics_group_hour WHERE project_id = %s", [project.pk]
        )
        assert cursor.fetchone()[0] == 0


def test_purging_again_deletes_nothing_more(project: Project) -> None:
    fill(project)
    purge_correlation(project.pk, "gone")
    assert purge_correlation(project.pk, "gone") == 0
    assert purge_project(project) == 70
    assert purge_project(project) == 0

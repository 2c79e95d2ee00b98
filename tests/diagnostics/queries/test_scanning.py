"""A search looks back stretch by stretch, and says where its patience ended."""

from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import pytest
from django.test import Client

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.api import events
from diagnostics.ingest.recording import record
from diagnostics.queries.events import FIRST_STRETCH, matching, scan
from diagnostics.queries.runs import runs_of
from diagnostics.selection.conditions import Days
from diagnostics.selection.selection import read_selection
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db
AGES = [timedelta(minutes=5), *(timedelta(hours=hours) for hours in (2, 5, 6))]


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def project(now: datetime) -> Project:
    project = Project.objects.create(slug="p", name="P")
    for number, age in enumerate(AGES):
        at = (now - age).isoformat()
        event = make_event(correlation_id=f"job-{number}", occurred_at=at)
        record(project.pk, [event], 1.0)
    return project


def test_every_stretch_is_looked_at_and_the_newest_come_first(
    project: Project, now: datetime
) -> None:
    found_in = matching(project.pk, read_selection({"q": "job"}))
    since = now - timedelta(days=7)
    scanned = scan(found_in, since, now, 10)
    names = [event.correlation_id for event in scanned.rows]
    assert names == ["job-0", "job-1", "job-2", "job-3"]
    assert scanned.reached == since
    newest = scan(found_in, since, now, 2)
    assert [event.correlation_id for event in newest.rows] == names[:2]
    assert newest.reached > since


def test_without_patience_one_stretch_is_looked_at(project: Project, now: datetime) -> None:
    found_in = matching(project.pk, read_selection({"q": "job"}))
    scanned = scan(found_in, now - timedelta(days=7), now, 10, patience_seconds=0)
    assert [event.correlation_id for event in scanned.rows] == ["job-0"]
    assert scanned.reached == now - FIRST_STRETCH


def test_pages_of_an_impatient_search_lead_to_every_event(
    project: Project, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = partial(scan, patience_seconds=0)
    monkeypatch.setattr(events, "scan", impatient)
    key = issue_key(project, "tests", [Scope.READ]).text
    begin = (now - timedelta(hours=7)).isoformat()
    # An end with an offset of its own: what is said is in UTC all the same.
    end = now.astimezone(timezone(timedelta(hours=9))).isoformat()
    asked: dict[str, str] = {"q": "job", "limit": "1", "from": begin, "to": end}
    found, pages = [], 0
    while True:
        headers = {"Authorization": f"Bearer {key}"}
        body = Client().get("/api/v1/events", asked, headers=headers).json()
        found += [item["correlation_id"] for item in body["items"]]
        pages += 1
        if body["next"] is None:
            break
        if not body["items"]:
            (note,) = body["notes"]
            assert note.startswith("Searched back to ")
            told = datetime.fromisoformat(note.split()[3])
            assert timedelta(0) < now - told < timedelta(hours=7, seconds=1)
        asked["cursor"] = body["next"]
    assert found == ["job-0", "job-1", "job-2", "job-3"]
    assert pages > len(found)


def test_events_of_runs_are_searched_in_the_days_that_are_asked_for(
    project: Project, now: datetime
) -> None:
    since = now - timedelta(hours=3)
    runs = runs_of(project.pk, read_selection({"q": "pointer:/steps/1"}), Days(since))
    # Of the events and of their details.
    assert str(runs.query).count(f">= {since.isoformat(sep=' ')}") == 2

"""A search looks back stretch by stretch, and says where its patience ended."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.recording import record
from diagnostics.queries import events, runs
from diagnostics.queries.events import FIRST_STRETCH, matching, scan
from diagnostics.queries.runs import read_runs, runs_of
from diagnostics.selection.selection import read_selection
from diagnostics.store.aggregation import fold
from failsoft.events import PostedEvent
from tests.diagnostics.builders import make_event, succeeded

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


def test_without_patience_one_stretch_is_looked_at(
    project: Project, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "PATIENCE_SECONDS", 0)
    found_in = matching(project.pk, read_selection({"q": "job"}))
    scanned = scan(found_in, now - timedelta(days=7), now, 10)
    assert [event.correlation_id for event in scanned.rows] == ["job-0"]
    assert scanned.reached == now - FIRST_STRETCH


def test_pages_of_an_impatient_search_lead_to_every_event(
    project: Project, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "PATIENCE_SECONDS", 0)
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
    asked = replace(read_selection({"q": "pointer:/steps/1"}), begin=since)
    with CaptureQueriesContext(connection) as statements:
        list(runs_of(project.pk, asked))
    # Of the events and of their details.
    assert statements[0]["sql"].count(f">= '{since.isoformat(sep=' ')}'") == 2


@pytest.mark.parametrize(("most_known", "is_folded"), [(0, True), (300, True), (300, False)])
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("go", ["good"]),
        ("ood", []),
        ("SORRY", ["bad"]),
        ("next_", ["bad", "good"]),
        ("Checkout", ["bad", "good"]),
        ("acme/tiny", ["bad", "good"]),
        ("-checkout", []),
        ("sorry", ["bad"]),
        ("checkout -sorry", ["good"]),
        ("nowhere", []),
    ],
)
def test_runs_have_the_words_of_their_names_failures_and_details(
    monkeypatch: pytest.MonkeyPatch, most_known: int, is_folded: bool, words: str, found: list[str]
) -> None:
    monkeypatch.setattr(runs, "MOST_KNOWN", most_known)
    now = clock.now()
    named = {"source": "checkout", "provider": "acme", "model": "tiny", "occurred_at": str(now)}
    project = Project.objects.create(slug="words", name="Words")
    bad = make_event(correlation_id="bad", raw_output_preview="Sorry, no plan", **named)
    good = PostedEvent.model_validate(succeeded(correlation_id="good", **named))
    record(project.pk, [bad, good], 1.0)
    if is_folded:
        fold()
    asked = replace(read_selection({"q": words}), begin=now - timedelta(days=1))
    page = read_runs(project.pk, asked, 10, None, clock.now())
    assert sorted(run.correlation_id for run in page.runs) == found


@pytest.mark.parametrize("words", ["sorry", "pointer:/tool"])
def test_runs_are_found_beside_one_that_has_a_word_often(
    monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr(runs, "MOST_KNOWN", 1)
    now = clock.now()
    errors = [{"path": "/tool", "message": "unknown"}]
    told = {"raw_output_preview": "Sorry", "validation_errors": errors, "occurred_at": str(now)}
    often = [make_event(correlation_id="often", attempt=n, **told) for n in range(1, 41)]
    project = Project.objects.create(slug="often", name="Often")
    record(project.pk, [*often, make_event(correlation_id="once", **told)], 1.0)
    asked = replace(read_selection({"q": words}), begin=now - timedelta(days=1))
    page = read_runs(project.pk, asked, 10, None, clock.now())
    assert sorted(run.correlation_id for run in page.runs) == ["often", "once"]

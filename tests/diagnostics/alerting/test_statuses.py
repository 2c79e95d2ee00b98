"""How every series of a project stands: one value for all who ask of one moment."""

from datetime import timedelta

import pytest

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.statuses import StatusSet, read_statuses
from diagnostics.analysis.series import SeriesKey, SeriesState
from diagnostics.console.api import list_series
from diagnostics.ingest.recording import record
from diagnostics.selection.selection import Selection, read_selection
from tests.console import post_events, post_runs
from tests.diagnostics.alert_calls import count_calls
from tests.diagnostics.alerting.incident_stories import IncidentStory, Trouble, write_story
from tests.diagnostics.builders import degraded, make_event, succeeded
from tests.shifted_clock import shift_clock

HOUR = timedelta(hours=1)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    shift_clock()
    return Project.objects.create(slug="p", name="P")


def read(project: Project, **asked: str) -> StatusSet:
    return read_statuses(project.pk, read_selection(asked), clock.now())


def test_the_baseline_is_the_week_before_the_last_day(project: Project) -> None:
    now = clock.now()
    before, long_ago = now - timedelta(days=3), now - timedelta(days=20)
    events = [
        *[succeeded(occurred_at=before.isoformat()) for _ in range(19)],
        degraded(occurred_at=before.isoformat()),
        *[degraded(occurred_at=long_ago.isoformat()) for _ in range(5)],
        *[degraded(occurred_at=now.isoformat()) for _ in range(20)],
    ]
    post_events(project, *events)
    (status,) = read(project).series.values()
    assert status.baseline == pytest.approx(0.05)
    assert status.state is SeriesState.DEGRADING


def test_the_range_of_a_page_changes_no_status(project: Project) -> None:
    now = clock.now()
    post_runs(project, 190, 10, now - timedelta(days=2))
    for minute in range(20):
        post_runs(project, 2, 1, now - timedelta(minutes=120 - minute))
    (day,) = read(project).series.values()
    assert day.state is SeriesState.DEGRADING
    for name in ("1h", "6h", "7d", "90d"):
        (other,) = read(project, range=name).series.values()
        assert (other.state, other.onset, other.rate) == (day.state, day.onset, day.rate)


def test_a_filter_on_series_keeps_statuses_as_they_are(project: Project) -> None:
    post_runs(project, 40, 20, clock.now() - timedelta(hours=2))
    (whole,) = read(project).kept_by(Selection())
    narrow = read_selection({"model": "fake-1"})
    (kept,) = read_statuses(project.pk, narrow, clock.now()).kept_by(narrow)
    assert kept.onset == whole.onset
    other = read_selection({"model": "another"})
    assert read_statuses(project.pk, other, clock.now()).kept_by(other) == []


def test_a_status_of_the_past_ends_there(project: Project) -> None:
    now = clock.now()
    post_runs(project, 40, 0, now - timedelta(hours=5))
    post_runs(project, 10, 30, now - timedelta(hours=1))
    begin, end = now - timedelta(hours=6), now - timedelta(hours=3)
    asked = {"from": begin.isoformat(), "to": end.isoformat()}
    (then,) = read(project, **asked).series.values()
    assert (then.at, then.state, then.runs) == (end, SeriesState.OK, 40)
    (since_then,) = read(project).series.values()
    assert since_then.state is SeriesState.DEGRADING


def test_a_series_of_calls_alone_is_judged_by_its_calls(project: Project) -> None:
    now = clock.now()
    shares = [0.02] * 70 + [0.5] * 2
    count_calls(project, now - 72 * HOUR, shares, 30, "m-1", width=HOUR)
    (status,) = read(project).series.values()
    assert (status.unit, status.state) == ("call", SeriesState.DEGRADING)
    assert status.rate == pytest.approx(0.5, abs=0.15)
    assert status.baseline == pytest.approx(0.02, abs=0.02)
    ((item,), _) = list_series(project.pk, Selection(), now)
    assert (item["counted"], item["state"]) == ("calls", "degrading")
    assert (item["runs"], item["degraded"]) >= (660, status.degraded)


def test_failures_without_any_success_have_no_rate(project: Project) -> None:
    at = clock.now() - HOUR
    record(project.pk, [make_event(occurred_at=at.isoformat()) for _ in range(30)])
    (status,) = read(project).series.values()
    assert (status.unit, status.state, status.runs) == ("call", SeriesState.NO_DATA, 30)
    assert (status.rate, status.interval, status.since) == (None, None, None)


def test_a_trouble_of_days_is_no_part_of_its_own_baseline(project: Project) -> None:
    now = clock.now()
    place = {"environment": "prod", "node": "plan", "provider": "acme", "prompt_version": "v1"}
    places = [{**place, "model": name, "source": "crm", "schema": "S"} for name in ("a", "b")]
    trouble = Trouble({"model": "a"}, now - 34 * HOUR, 0.6, "truncated")
    write_story(project, IncidentStory("run", places, 120, 0.01, [trouble]), now)
    found = read(project)
    status = found.series[SeriesKey("prod", "plan", "acme", "a")]
    assert status.since == found.verdict.since
    assert status.since is not None
    assert status.since < now - timedelta(hours=30)
    assert status.baseline == pytest.approx(0.01, abs=0.01)
    assert status.runs > 30 * 60

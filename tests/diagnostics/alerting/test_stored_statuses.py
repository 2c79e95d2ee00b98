"""The evaluator stores how series stand, and all places read that one value."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.alerting import evaluator
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.rule_models import ProjectStatus
from diagnostics.alerting.statuses import (
    STATUSES,
    judge_statuses,
    read_status,
    read_statuses,
    recent_verdict_within,
    store_statuses,
    stored_statuses,
)
from diagnostics.analysis.series import SeriesState
from diagnostics.console.api import list_series
from diagnostics.console.now import now_context
from diagnostics.reports.document import status_of
from diagnostics.reports.periods import ReportPeriod
from diagnostics.reports.queries import ReportSubject, summarise
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.store.models import Heartbeat, ProjectTurn
from diagnostics.verdict.verdicts import describe
from tests.console import post_runs
from tests.diagnostics.alert_calls import count_degraded, degrade
from tests.incidents.drawn_runs import make_incident
from tests.incidents.traffic_model import TrafficShape
from tests.incidents.writing import write_incident
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db
SHAPE = TrafficShape(40.0, 5.0, 0.7, 3, 2, 1, 2)


@pytest.fixture
def project() -> Project:
    shift_clock()
    return Project.objects.create(slug="p", name="P")


def trouble(project: Project) -> datetime:
    now = clock.now()
    post_runs(project, 190, 10, now - timedelta(days=2))
    for minute in range(20):
        post_runs(project, 2, 1, now - timedelta(minutes=120 - minute))
    return now


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["model", "release"])
def test_all_places_say_one_value_of_one_moment(kind: str, project: Project) -> None:
    now = clock.now()
    write_incident(project, make_incident(kind, 2, now, shape=SHAPE))
    stored = store_statuses(project.pk, now)
    bad = {key: one for key, one in stored.series.items() if one.since}
    assert bad

    for name in ("24h", "6h", "7d"):
        asked = read_selection({"range": name})
        rows = {row.key: row for row in now_context(project.pk, asked, now)["lines"]}
        for key, status in bad.items():
            assert (rows[key].state, rows[key].since) == (status.state, status.since)
            assert rows[key].unit == status.shown
            assert rows[key].unit != status.unit or rows[key].baseline == status.baseline
        series = {
            (one["environment"], one["node"], one["provider"], one["model"]): one
            for one in list_series(project.pk, asked, now)[0]
        }
        for key, status in stored.series.items():
            one = series[key]
            assert (one["state"], one["since"]) == (status.state, status.since)
            name = {"runs": "baseline", "calls": "calls_baseline"}[one["judged_by"]]
            assert one[name] == status.baseline

    token = issue_key(project, "k", [Scope.READ]).text
    headers = {"Authorization": f"Bearer {token}"}
    answer = Client().get("/api/v1/verdict", headers=headers).json()
    assert datetime.fromisoformat(answer["since"]) == stored.verdict.since
    touched = [one for who, one in bad.items() if who in stored.verdict.touched]
    assert {one.since for one in touched} == {stored.verdict.since}

    sent = {"HTTP_X_FORWARDED_FOR": "192.0.2.1"}
    text = Client().get("/metrics", headers=headers, **sent).content.decode()  # type: ignore[arg-type]
    states = [one.state for one in stored.series.values()]
    for state in SeriesState:
        assert f'failsoft_series{{state="{state}"}} {states.count(state)}.0\n' in text
    for who, status in bad.items():
        labels = ",".join(
            f'{name}="{value or "unknown"}"' for name, value in sorted(who._asdict().items())
        )
        assert f"failsoft_series_degraded_ratio{{{labels}}} {status.rate}\n" in text

    today = now.astimezone(UTC).date()
    period = ReportPeriod(today - timedelta(days=6), today + timedelta(days=1), ZoneInfo("UTC"))
    subject = ReportSubject(project, "P", "", "weekly", period)
    models = {one.name: status_of(one) for one in summarise(subject, now).models}
    for who in bad:
        assert models[f"{who.provider}/{who.model}"] is SeriesState.DEGRADING


def test_what_was_stored_is_read_as_it_was_judged(project: Project) -> None:
    now = trouble(project)
    stored = store_statuses(project.pk, now)
    found = read_statuses(project.pk, Selection(), now)
    assert found.series == stored.series
    assert describe(found.verdict) == describe(stored.verdict)
    assert found.verdict.touched == stored.verdict.touched
    assert found.verdict.told == stored.verdict.told


def test_the_first_look_judges_nothing(
    project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    now = trouble(project)
    store_statuses(project.pk, now)
    with django_assert_num_queries(1):
        read_status(project.pk, Selection(), now + timedelta(minutes=2))


def test_the_verdict_of_a_part_reads_the_stored_row_once(
    project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    now = trouble(project)
    store_statuses(project.pk, now)
    part = read_selection({"model": "of nobody"})
    with django_assert_num_queries(1):
        verdict = recent_verdict_within(project.pk, Selection(), part, now)
    assert verdict.since is None


def test_a_row_that_nobody_renews_is_not_read(project: Project) -> None:
    now = trouble(project)
    store_statuses(project.pk, now)
    post_runs(project, 0, 5, now)
    later = now + timedelta(minutes=4)
    assert stored_statuses(project.pk, later) is None
    assert read_statuses(project.pk, Selection(), later).at == later


def test_the_last_row_of_a_project_that_takes_too_long_is_read(project: Project) -> None:
    now = trouble(project)
    stored = store_statuses(project.pk, now)
    turn = {"minute": now, "began_at": now, "ended_at": now, "passed_over": [STATUSES]}
    ProjectTurn.objects.create(project=project, **turn)
    found = read_statuses(project.pk, Selection(), now + timedelta(hours=4))
    assert (found.at, found.series) == (now, stored.series)


def test_a_row_of_another_version_is_judged_again(project: Project) -> None:
    now = trouble(project)
    store_statuses(project.pk, now)
    ProjectStatus.objects.update(series=[{"key": "?"}])
    (status,) = read_statuses(project.pk, Selection(), now).series.values()
    assert status.state is SeriesState.DEGRADING


def test_first_events_are_seen_before_the_next_evaluation(project: Project) -> None:
    now = clock.now()
    post_runs(project, 1, 0, now)
    store_statuses(project.pk, now)
    post_runs(project, 3, 0, now)
    (status,) = read_statuses(project.pk, Selection(), now).series.values()
    assert status.runs == 4


def test_calls_of_one_version_are_judged_apart(project: Project) -> None:
    now = trouble(project)
    store_statuses(project.pk, now)
    asked = read_selection({"prompt_version": "none-such"})
    assert read_statuses(project.pk, asked, now).series == {}


def test_the_evaluator_stores_each_project_once_a_minute(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = trouble(project)
    evaluator.evaluate(now)
    row = ProjectStatus.objects.get()
    assert row.at == now
    expected = judge_statuses(project.pk, Selection(), now)
    assert read_statuses(project.pk, Selection(), now).series == expected.series
    asked: list[int] = []
    monkeypatch.setattr(evaluator, "store_statuses", lambda pk, _: asked.append(pk))
    evaluator.evaluate(now)
    assert asked == []
    evaluator.evaluate(now + timedelta(minutes=1))
    assert asked == [project.pk]


def test_a_status_that_fails_stops_no_alarm(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now()
    count_degraded(project.pk)
    degrade(project, now - timedelta(minutes=1), 3)

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(evaluator, "store_statuses", fail)
    assert evaluator.evaluate(now) == 1
    assert Incident.objects.count() == 1
    assert not ProjectStatus.objects.exists()
    assert ProjectTurn.objects.get().passed_over == [STATUSES]


@pytest.mark.slow
def test_a_project_whose_statuses_take_too_long_delays_no_alarm_of_another(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now()
    large = Project.objects.create(slug="large", name="Large")
    for one in (large, project):
        count_degraded(one.pk)
        degrade(one, now - timedelta(minutes=1), 3)

    def judge(project_id: int, at: datetime) -> None:
        while project_id == large.pk:
            sum(range(1_000))

    monkeypatch.setattr(evaluator, "store_statuses", judge)
    monkeypatch.setattr(
        evaluator, "PARTS", [replace(part, seconds=3.0) for part in evaluator.PARTS]
    )
    assert evaluator.evaluate(now) == 2
    assert {one.project_id for one in Incident.objects.all()} == {large.pk, project.pk}
    assert ProjectTurn.objects.get(pk=large.pk).passed_over == [STATUSES]
    assert ProjectTurn.objects.get(pk=project.pk).passed_over == []
    assert Heartbeat.objects.get(name="evaluator").at >= now

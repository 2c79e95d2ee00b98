"""A run that one model fails and another rescues: the first one degrades, and only that."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.statuses import StatusSet, read_statuses
from diagnostics.console.api import list_series
from diagnostics.console.now import CauseCard
from diagnostics.ingest.recording import record
from diagnostics.queries.call_counts import first_attempts
from diagnostics.selection.selection import Selection
from diagnostics.verdict.verdicts import describe
from diagnostics.web.charts.series import SeriesChart
from failsoft.events import PostedEvent
from tests.console import make_member
from tests.diagnostics.builders import AT, make_event, succeeded
from tests.shifted_clock import shift_clock

HOUR = timedelta(hours=1)


def _runs(at: datetime, count: int, failing: int, **place: Any) -> Iterator[PostedEvent]:
    """Yield runs that ask `first`, and `second` where it fails."""
    for number in range(count):
        run = {
            "correlation_id": f"{at:%d%H%M}-{number}",
            "occurred_at": (at + timedelta(seconds=40 * number)).isoformat(),
            **place,
        }
        first = {**run, "provider": "first", "model": "first-1"}
        if number * failing % count < failing:
            yield make_event(**first, parse_error_type="schema_invalid")
            second = {**run, "provider": "second", "model": "second-1"}
            yield PostedEvent.model_validate(succeeded(**second, attempt=2))
        else:
            yield PostedEvent.model_validate(succeeded(**first))


@pytest.fixture
def project(transactional_db: None) -> Project:
    shift_clock()
    return Project.objects.create(slug="p", name="P")


@pytest.fixture
def judged(project: Project) -> StatusSet:
    now = clock.now()
    for hour in range(100, 3, -4):
        record(project.pk, list(_runs(now - hour * HOUR, 20, 0)))
    for hour in (3, 2, 1):
        record(project.pk, list(_runs(now - hour * HOUR, 40, 18)))
    return read_statuses(project.pk, Selection(), now)


def test_the_failing_model_of_a_fallback_degrades_and_the_rescuer_does_not(
    judged: StatusSet,
) -> None:
    found = {key.provider: status for key, status in judged.series.items()}
    first, second = found["first"], found["second"]
    assert (first.state, first.unit) == ("degrading", "call")
    assert first.rate == pytest.approx(0.45, abs=0.1)
    assert (first.baseline, first.before.runs.share) == (0.0, 0.0)
    assert (second.state, second.degraded, second.since) == ("ok", 0, None)


def test_the_verdict_names_the_failing_model_and_says_how_runs_ended(judged: StatusSet) -> None:
    verdict = describe(judged.verdict)
    assert (verdict["state"], verdict["provider"], verdict["model"]) == (
        "degrading",
        "first",
        "first-1",
    )
    assert verdict["counted"] == "calls"
    assert (verdict["beside"]["counted"], verdict["beside"]["rate"]) == ("runs", 0.0)
    assert "runs degraded" in verdict["sentence"]


def test_the_api_shows_calls_beside_runs(project: Project, judged: StatusSet) -> None:
    found, _ = list_series(project.pk, Selection(), judged.at)
    items = {item["provider"]: item for item in found}
    first, second = items["first"], items["second"]
    assert (first["counted"], first["judged_by"], first["degraded"]) == ("runs", "calls", 0)
    assert first["calls"] - first["calls_failed"] == first["runs"]
    assert (first["calls_failed"], first["calls_baseline"]) == (54, 0.0)
    assert first["calls_failed_low"] < first["calls_failed_rate"] < first["calls_failed_high"]
    assert first["first_pass_rate"] == pytest.approx(1 - first["calls_failed_rate"])
    # Whoever only rescues has no first attempt that could fail.
    assert (second["first_pass_rate"], second["repair_success_rate"]) == (None, 1.0)
    assert (second["calls"], second["calls_failed"]) == (54, 0)


def test_pages_show_both_rates(project: Project, judged: StatusSet, client: Client) -> None:
    client.force_login(make_member(project))
    now, models = (client.get(path).content.decode() for path in ("/", "/models/"))
    assert "0.0\u202f% of runs degraded" in now
    assert "Runs degraded" in models


def test_a_model_whose_every_call_fails_degrades_though_no_run_ends_there(project: Project) -> None:
    now = clock.now()
    for hour in range(100, 3, -4):
        record(project.pk, list(_runs(now - hour * HOUR, 20, 0)))
    for hour in range(24, 0, -1):
        record(project.pk, list(_runs(now - hour * HOUR + timedelta(minutes=1), 10, 10)))
    statuses = read_statuses(project.pk, Selection(), now).series
    (first,) = (status for key, status in statuses.items() if key.provider == "first")
    assert (first.state, first.unit) == ("degrading", "call")


def test_a_new_model_whose_retries_succeed_is_not_degrading(project: Project) -> None:
    now = clock.now()
    for number in range(40):
        at = now - HOUR + timedelta(seconds=number)
        run = {"occurred_at": at.isoformat(), "correlation_id": f"run-{number}"}
        events = [make_event(**run)] if number % 2 else []
        attempt = len(events) + 1
        record(project.pk, [*events, PostedEvent.model_validate(succeeded(**run, attempt=attempt))])
    (status,) = read_statuses(project.pk, Selection(), now).series.values()
    assert status.state == "ok"


@pytest.mark.parametrize(
    ("checked", "failed", "ends", "retries", "expected"),
    [
        # Good first attempts and those that another model rescued.
        pytest.param(71, 15, (56, 0, 0), 0, 71, id="a failing model"),
        pytest.param(15, 0, (0, 15, 0), 15, 0, id="a rescuer"),
        pytest.param(12, 4, (8, 2, 0), 2, 10, id="retries of the same model"),
        # Every answer that was never valid failed at first.
        pytest.param(95, 0, (95, 0, 5), 0, 100, id="degraded runs without their calls"),
        pytest.param(4, 4, (40, 3, 1), 0, 44, id="outcomes, and failing calls beside them"),
        pytest.param(0, 0, (0, 0, 9), 0, 9, id="an open breaker"),
    ],
)
def test_first_attempts_are_those_that_were_sent_to_the_model(
    checked: int, failed: int, ends: tuple[int, int, int], retries: int, expected: int
) -> None:
    assert first_attempts(checked, failed, *ends, retries) == expected


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        (
            {"counted": "calls", "count": 400, "rate": 0.35, "baseline": 0.041},
            "35\u202f% of 400 calls failed (baseline 4.1\u202f%)",
        ),
        (
            {"counted": "calls", "count": 1, "rate": 0.0, "baseline": None},
            "0.0\u202f% of 1 call failed",
        ),
        ({"counted": "runs", "count": 20, "rate": 0.0, "baseline": None}, ""),
        (None, ""),
    ],
)
def test_the_card_of_an_incident_has_failed_calls_beside_runs(
    beside: dict[str, Any] | None, words: str
) -> None:
    chart = SeriesChart(name="calls", title="", since=AT, width=HOUR, slots=[], noun="run")
    incident = Incident(verdict={"beside": beside})
    assert CauseCard(incident, (), (), chart, is_silenced=False).calls == words

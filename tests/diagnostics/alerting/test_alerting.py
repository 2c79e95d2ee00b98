"""The evaluator: what is watched out of the box, incidents, late events, being killed."""

from datetime import datetime, timedelta

import pytest

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.evaluator import evaluate, evaluate_project
from diagnostics.alerting.incident_models import Incident, IncidentSlice, Transition
from diagnostics.alerting.rule_models import AlertRule, AlertSlot, AlertState, Evaluation
from diagnostics.alerting.rule_rows import create_rule, ensure_standard_rules
from diagnostics.store.windows import floor
from tests.diagnostics.alert_calls import MINUTE, count_calls, degrade

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="p", name="P")


@pytest.fixture
def now() -> datetime:
    """The begin of a minute, so that minutes can be told."""
    return floor(clock.now(), MINUTE)


def test_s0_58_the_third_degradation_in_an_hour_raises_one_alert(
    project: Project, now: datetime
) -> None:
    ensure_standard_rules()
    degrade(project, now - 3 * MINUTE, 2)
    evaluate_project(project.pk, now - MINUTE)
    assert not Incident.objects.exists()
    degrade(project, now, 1)
    degrade(project, now, 2, model="fake-2")
    for minute in range(5):
        evaluate_project(project.pk, now + minute * MINUTE)
    incident = Incident.objects.get(project=project)
    slices = IncidentSlice.objects.filter(incident=incident)
    assert [one.slice for one in slices] == [{"provider": "fake", "model": "fake-1"}]
    assert [(one.k, one.bound) for one in slices] == [(3, 3.0)]


def test_every_project_is_watched_without_being_asked(project: Project, now: datetime) -> None:
    assert evaluate(now) == 1
    rules = AlertRule.objects.filter(project=project).order_by("standard")
    assert [rule.standard for rule in rules] == ["change", "degraded_count"]
    assert AlertSlot.objects.filter(project=project).count() == 1


def test_a_minute_is_looked_at_once(project: Project, now: datetime) -> None:
    degrade(project, now - MINUTE, 3)
    assert [evaluate(now), evaluate(now), evaluate(now - MINUTE)] == [1, 0, 0]
    assert Incident.objects.count() == 1
    assert Transition.objects.filter(kind="fired").count() == 1


def test_missed_minutes_are_caught_up_in_order(project: Project, now: datetime) -> None:
    evaluate(now - 7 * MINUTE)
    assert evaluate(now) == 7
    slots = AlertSlot.objects.filter(project=project).order_by("slot")
    assert [row.slot for row in slots] == [now - n * MINUTE for n in range(7, -1, -1)]


def test_a_model_that_gets_worse_fires_once_and_recovers_once(
    project: Project, now: datetime
) -> None:
    begin = now - timedelta(hours=4)
    shares = [0.03] * 120 + [0.25] * 20 + [0.03] * 100
    count_calls(project, begin, iter(shares), 5, "m-1")
    ensure_standard_rules()
    for minute in range(60, 240):
        evaluate_project(project.pk, begin + minute * MINUTE)
    incident = Incident.objects.get(project=project)
    bad_at = begin + 120 * MINUTE
    assert abs(incident.onset - bad_at) <= 5 * MINUTE
    assert bad_at < incident.fired_at <= bad_at + 12 * MINUTE
    assert incident.cleared_at is not None
    assert incident.state == Incident.State.RESOLVED
    assert incident.title == "acme/m-1, next step in no environment"
    kinds = Transition.objects.filter(incident=incident).order_by("at", "pk")
    assert [one.kind for one in kinds] == ["fired", "slice_cleared", "cleared"]


def test_events_three_hours_late_move_no_alert(project: Project, now: datetime) -> None:
    create_rule(
        project.pk,
        {"name": "Too many failures", "signal": "call_failure_ratio", "detector": "threshold"},
        None,
    )
    begin = now - timedelta(hours=5)
    count_calls(project, begin, iter([0.02] * 300), 2, "m-1")
    ensure_standard_rules()
    for minute in range(270, 300):
        evaluate_project(project.pk, begin + minute * MINUTE)
    count_calls(project, now - timedelta(hours=3, minutes=10), iter([0.9] * 10), 100, "m-1")
    for minute in range(30):
        evaluate_project(project.pk, now + minute * MINUTE)
    assert not Incident.objects.exists()


def test_every_look_is_kept_with_its_numbers(project: Project, now: datetime) -> None:
    count_calls(project, now - 9 * MINUTE, iter([0.1] * 10), 6, "m-1")
    evaluate(now)
    looks = Evaluation.objects.filter(state__rule__standard="change")
    (look,) = looks
    assert (look.n, look.rule_version, look.slot) == (60, 1, now)
    assert look.value < look.bound
    assert look.verdict == "clears"


def test_two_models_that_fail_together_are_one_incident(project: Project, now: datetime) -> None:
    begin = now - timedelta(hours=3)
    for model in ("m-1", "m-2", "m-3"):
        shares = [0.03] * 150 + [0.6] * 31
        count_calls(project, begin, iter(shares), 5, model)
    ensure_standard_rules()
    for minute in range(140, 181):
        evaluate_project(project.pk, begin + minute * MINUTE)
    fired = list(Incident.objects.values_list("title", "cause"))
    assert len(fired) == 1, fired
    assert IncidentSlice.objects.filter(incident__title=fired[0][0]).count() == 3


def test_a_watch_survives_being_put_by(project: Project, now: datetime) -> None:
    begin = now - timedelta(hours=8)
    count_calls(project, begin, iter([0.05] * 480), 3, "m-1")
    ensure_standard_rules()
    for minute in (470, 475, 479):
        evaluate_project(project.pk, begin + minute * MINUTE)
    row = AlertState.objects.get(rule__standard="change")
    assert row.state == "ok"
    hours = row.memory["hours"]
    assert 5 <= len(hours) <= 10
    assert len(str(row.detector_state)) < 4_000

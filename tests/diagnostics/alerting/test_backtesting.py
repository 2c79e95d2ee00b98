"""When a rule would have fired, and writing it down for the past."""

from datetime import datetime, timedelta

import pytest
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.backfill import backfill, forget
from diagnostics.alerting.backtests import back_test, fires_of, pasts_of, read_rule, walk
from diagnostics.alerting.evaluator import evaluate_project
from diagnostics.alerting.incident_models import Incident, Transition
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.past import UntestableError
from diagnostics.alerting.rule_models import AlertRule, AlertState, Evaluation
from diagnostics.alerting.rule_rows import RuleError
from diagnostics.alerting.saved_states import ensure_standard_rules
from diagnostics.store.windows import floor
from diagnostics.verdict.verdicts import StoredVerdict
from tests.diagnostics.alert_calls import MINUTE, count_calls, count_degraded, degrade
from tests.diagnostics.alerting.notifications.building import make_channel

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
CHANGE = {"signal": "call_failure_ratio", "detector": "change"}


@pytest.fixture
def now() -> datetime:
    return floor(clock.now(), HOUR)


@pytest.fixture
def trouble(project: Project, now: datetime) -> datetime:
    """Ten days of one model with twelve bad hours; gives when they began."""
    begin = now - timedelta(days=10)
    shares = [0.03] * 120 + [0.3] * 12 + [0.03] * 108
    count_calls(project, begin, shares, 60, "m-1", HOUR)
    return begin + 120 * HOUR


def test_a_back_test_finds_the_one_trouble_of_ten_days(
    project: Project, now: datetime, trouble: datetime
) -> None:
    found = back_test(project.pk, CHANGE, now)
    (fire,) = found.fires
    assert fire.slice == {"provider": "acme", "model": "m-1"}
    assert abs(fire.onset - trouble) <= HOUR
    assert fire.cleared is not None
    assert trouble + 12 * HOUR <= fire.cleared <= trouble + 16 * HOUR
    assert set(found.grains) == {"hour", "10 minutes"}


def test_slices_that_would_fire_most_of_the_time_are_named(project: Project, now: datetime) -> None:
    for model, share in (("m-1", 0.2), ("m-2", 0.02)):
        count_calls(project, now - timedelta(days=4), [share] * 96, 60, model, HOUR)
    given = {**CHANGE, "detector": "threshold", "parameters": {"limit": 0.1}}
    found = back_test(project.pk, given, now)
    assert found.mostly_firing == [{"provider": "acme", "model": "m-1"}]


def test_a_threshold_finds_it_too(project: Project, now: datetime, trouble: datetime) -> None:
    given = {**CHANGE, "detector": "threshold", "parameters": {"limit": 0.1}}
    (fire,) = back_test(project.pk, given, now).fires
    assert trouble < fire.at <= trouble + 6 * HOUR


@pytest.mark.slow
def test_a_month_of_many_models_is_read_with_two_questions(
    project: Project, now: datetime, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for model in range(4):
        shares = [0.03] * 720
        count_calls(project, now - timedelta(days=30), shares, 30, f"m-{model}", HOUR)
    with django_assert_num_queries(2):
        assert back_test(project.pk, CHANGE, now).slices == 4


@pytest.mark.parametrize(
    ("detector", "parameters"), [("change", {}), ("threshold", {"limit": 0.1})]
)
def test_a_quiet_hour_is_not_looked_at(
    project: Project, now: datetime, detector: str, parameters: dict[str, float]
) -> None:
    given = {**CHANGE, "detector": detector, "parameters": parameters}
    shares = [0.0] * 40 + [1.0] + [0.0] * 199
    count_calls(project, now - 240 * HOUR, shares, 1, "m-1", HOUR)
    found = back_test(project.pk, given, now)
    # The hour of the failure, and the last one.
    assert (found.looks, found.fires) == (2, [])


@pytest.mark.parametrize(
    ("detector", "parameters"), [("change", {}), ("threshold", {"limit": 0.1})]
)
def test_leaving_quiet_hours_out_changes_no_alarm(
    project: Project, now: datetime, trouble: datetime, detector: str, parameters: dict[str, float]
) -> None:
    given = {**CHANGE, "detector": detector, "parameters": parameters}
    rule, since = read_rule(given), now - timedelta(days=30)
    pasts = pasts_of(project.pk, rule, since, now, now)
    (past,) = pasts.values()
    (whole,) = walk(rule, [past], now)
    (sparse,) = walk(rule, [past], now, is_whole=False)
    assert len(sparse) < len(whole)
    assert trouble < fires_of(past.values, whole)[0].at
    assert fires_of(past.values, sparse) == fires_of(past.values, whole)


def test_a_wrong_rule_and_a_signal_without_counts_are_refused(
    project: Project, now: datetime
) -> None:
    with pytest.raises(RuleError) as refused:
        back_test(project.pk, {**CHANGE, "parameters": {"limit": 2}}, now)
    assert refused.value.faults == {"parameters.limit": "unknown; change takes no parameter"}
    with pytest.raises(UntestableError):
        back_test(project.pk, {"signal": "source_silent", "detector": "absent"}, now)


def test_the_past_is_filled_in_once_and_can_be_taken_out(
    project: Project, now: datetime, trouble: datetime
) -> None:
    assert backfill(project.pk, now - timedelta(days=10), now) == 1
    assert backfill(project.pk, now - timedelta(days=10), now) == 0
    incident = Incident.objects.get(project=project)
    assert incident.is_backfilled
    assert incident.state == Incident.State.RESOLVED
    assert incident.title == "acme/m-1, next step"
    kinds = Transition.objects.filter(incident=incident).order_by("at", "pk")
    assert [one.kind for one in kinds] == ["fired", "slice_cleared", "cleared"]
    assert not Notification.objects.exists()
    assert Evaluation.objects.filter(is_backfilled=True).count() > 200
    assert forget(project.pk) == 1
    assert not Incident.objects.exists()


@pytest.mark.slow
def test_what_goes_on_at_the_end_of_the_past_is_taken_over(project: Project, now: datetime) -> None:
    begin = now - timedelta(days=4)
    count_calls(project, begin, [0.03] * 90, 60, "m-1", HOUR)
    count_calls(project, now - 6 * HOUR, [0.5] * 360, 1, "m-1")
    assert backfill(project.pk, begin, now) == 1
    assert AlertState.objects.get(rule__standard="change").state == "firing"
    # Now, the report and the page of the model say the same, before anything is evaluated.
    assert Incident.objects.get().verdict_at == now
    count_calls(project, now, [0.03] * 120, 4, "m-1")
    evaluate_project(project.pk, now)
    # Found in the past, judged in every minute from now on.
    assert Incident.objects.get().verdict_at == now
    for minute in range(1, 120):
        evaluate_project(project.pk, now + minute * MINUTE)
    incident = Incident.objects.get()
    assert incident.cleared_at is not None


def test_an_alarm_joins_the_open_incident_of_its_cause_that_was_backfilled(
    project: Project, now: datetime
) -> None:
    make_channel(project)
    count_calls(project, now - timedelta(days=4), [0.03] * 90, 60, "m-1", HOUR)
    count_calls(project, now - 6 * HOUR, [0.5] * 360, 1, "m-1")
    assert backfill(project.pk, now - timedelta(days=4), now) == 1
    count_degraded(project.pk)
    degrade(project, now - MINUTE, 3, provider="acme", model="m-1")
    evaluate_project(project.pk, now)
    incident = Incident.objects.get()
    assert not incident.is_backfilled
    assert incident.slices.filter(cleared_at=None).count() == 2
    # Who was told nothing of the past is told now, in the words of now.
    notification = Notification.objects.get()
    assert notification.reason == "fired"
    told = StoredVerdict.model_validate(incident.verdict_now).told
    assert told is not None
    assert StoredVerdict.model_validate(notification.facts).told == told
    assert incident.verdict_at == now


def test_a_backfilled_alarm_joins_the_open_incident_of_its_cause(
    project: Project, now: datetime
) -> None:
    make_channel(project)
    ensure_standard_rules()
    count_degraded(project.pk)
    change = AlertRule.objects.filter(standard="change")
    change.update(is_enabled=False)
    count_calls(project, now - timedelta(days=4), [0.03] * 90, 60, "m-1", HOUR)
    count_calls(project, now - 6 * HOUR, [0.5] * 360, 1, "m-1")
    degrade(project, now - MINUTE, 3, provider="acme", model="m-1")
    evaluate_project(project.pk, now)
    assert Notification.objects.count() == 1
    change.update(is_enabled=True)
    assert backfill(project.pk, now - timedelta(days=4), now) == 0
    incident = Incident.objects.get()
    assert not incident.is_backfilled
    assert incident.slices.filter(cleared_at=None).count() == 2
    assert Notification.objects.count() == 1

"""An alarm that comes back soon goes on with its incident; a recovery is told once, if at all."""

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.evaluator import evaluate_slot
from diagnostics.alerting.incident_actions import acknowledge, resolve
from diagnostics.alerting.incident_models import Incident, IncidentSlice, Transition
from diagnostics.alerting.incident_records import totals_by_rule
from diagnostics.alerting.notification_facts import headline_of
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.rule_rows import create_rule
from diagnostics.alerting.saved_states import ensure_standard_rules
from diagnostics.alerting.senders.messages import read_facts
from diagnostics.store.windows import floor
from tests.console import make_member
from tests.diagnostics.alert_calls import MINUTE, count_calls
from tests.diagnostics.alerting.notifications.building import make_channel

pytestmark = pytest.mark.django_db
RULE = {
    "name": "above 10 %",
    "signal": "call_failure_ratio",
    "detector": "threshold",
    "parameters": {"limit": 0.1},
}
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
BAD, WELL = [0.6] * 15, [0.0] * 16
FIRES, CLEARS, FIRES_AGAIN, CLEARS_AGAIN = 44, 60, 75, 91


@pytest.fixture
def begin() -> datetime:
    return floor(clock.now(), MINUTE) - timedelta(hours=5)


def look(project: Project, begin: datetime, *minutes: int) -> None:
    for minute in minutes:
        at = begin + minute * MINUTE
        assert evaluate_slot(project.pk, at, at)


def reasons() -> list[str]:
    return list(Notification.objects.order_by("pk").values_list("reason", flat=True))


def test_an_alarm_that_comes_back_within_an_hour_reopens_its_incident(
    project: Project, begin: datetime
) -> None:
    make_channel(project)
    count_calls(project, begin, [*[0.0] * 30, *BAD, *WELL, *BAD, *WELL, *[0.0] * 60], 5, "m-1")
    rule = create_rule(project.pk, RULE, None)
    look(project, begin, FIRES, CLEARS)
    assert Incident.objects.get().state == Incident.State.RESOLVED
    look(project, begin, FIRES_AGAIN)
    incident = Incident.objects.get()
    assert (incident.state, incident.cleared_at) == (Incident.State.OPEN, None)
    assert headline_of(read_facts(Notification.objects.latest("pk"))).startswith("Firing again: ")
    look(project, begin, CLEARS_AGAIN, CLEARS_AGAIN + 59)
    assert reasons() == ["fired", "recovered", "reminder"]
    look(project, begin, CLEARS_AGAIN + 60)
    kinds = Transition.objects.order_by("at", "pk").values_list("kind", flat=True)
    once = ["slice_cleared", "cleared"]
    assert list(kinds) == ["fired", *once, "reopened", *once]
    assert reasons() == ["fired", "recovered", "reminder", "recovered"]
    assert IncidentSlice.objects.count() == 1
    assert totals_by_rule(project.pk, clock.now())[rule.pk].fires == 1


def test_whoever_has_acknowledged_an_incident_keeps_it(project: Project, begin: datetime) -> None:
    count_calls(project, begin, [*[0.0] * 30, *BAD, *WELL, *BAD], 5, "m-1")
    create_rule(project.pk, RULE, None)
    look(project, begin, FIRES)
    assert acknowledge(Incident.objects.get(), make_member(project))
    look(project, begin, CLEARS, FIRES_AGAIN)
    assert Incident.objects.get().state == Incident.State.ACKNOWLEDGED


def test_an_alarm_that_comes_back_later_is_an_incident_of_its_own(
    project: Project, begin: datetime
) -> None:
    shares = [*[0.0] * 30, *BAD, *[0.0] * 80, *BAD]
    count_calls(project, begin, shares, 5, "m-1")
    create_rule(project.pk, RULE, None)
    look(project, begin, FIRES, CLEARS, len(shares) - 1)
    assert Incident.objects.count() == 2


def test_what_a_person_resolved_is_not_reopened(project: Project, begin: datetime) -> None:
    count_calls(project, begin, [*[0.0] * 30, *BAD, *WELL, *BAD], 5, "m-1")
    create_rule(project.pk, RULE, None)
    look(project, begin, FIRES)
    resolve(Incident.objects.get(), make_member(project), "model")
    look(project, begin, CLEARS, FIRES_AGAIN)
    assert Incident.objects.count() == 2


@pytest.mark.parametrize(("kind", "state"), [("email", "suppressed"), ("webhook", "queued")])
def test_a_manual_end_is_no_recovery_and_names_the_person(
    project: Project, begin: datetime, kind: str, state: str
) -> None:
    make_channel(project, kind, "https://hooks.example.org/T1" if kind == "webhook" else "")
    count_calls(project, begin, [*[0.0] * 30, *BAD], 5, "m-1")
    create_rule(project.pk, RULE, None)
    look(project, begin, FIRES)
    by: User = make_member(project, "mia")
    resolve(Incident.objects.get(), by, "model")
    row = Notification.objects.get(reason="recovered")
    assert row.state == state
    assert headline_of(read_facts(row)).startswith("Resolved by mia after ")


def test_what_ended_by_silence_is_judged_by_what_comes_then(project: Project) -> None:
    ensure_standard_rules()
    begin = floor(clock.now(), HOUR) - 46 * HOUR
    count_calls(project, begin - DAY, [*[0.0] * 288, *[0.5] * 12], 10, "m-1", 5 * MINUTE)
    look(project, begin, *range(0, 60, 10), *range(60, 12 * 60, 60))
    ended = Incident.objects.get().cleared_at
    assert ended
    begin += DAY
    count_calls(project, begin, [*[0.0] * 12, *[0.6] * 12], 10, "m-1", 5 * MINUTE)
    look(project, begin, *range(0, 60, 10))
    assert Incident.objects.get().cleared_at == ended
    look(project, begin, *range(60, 120, 10))
    assert Incident.objects.count() == 2

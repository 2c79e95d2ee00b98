"""What people do about incidents: acknowledge, resolve, comment, assign, link, silence."""

from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import Http404
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.models import AuditEntry, Membership, Project
from diagnostics.alerting.evaluator import evaluate, evaluate_project
from diagnostics.alerting.incident_actions import (
    IncidentError,
    acknowledge,
    archive_rule,
    assign,
    comment,
    end_silence,
    incident_of,
    link,
    resolve,
    silence,
    silence_incident,
)
from diagnostics.alerting.incident_models import Incident, IncidentNote, Transition
from diagnostics.alerting.incident_rows import clear_slices
from diagnostics.alerting.notification_facts import headline_of, lead_of
from diagnostics.alerting.notification_models import NotificationReason as Reason
from diagnostics.alerting.notification_rows import Notice, facts_of
from diagnostics.alerting.rule_models import AlertRule, AlertSlot, AlertState, Silence
from diagnostics.alerting.rule_rows import change_rule, create_rule
from diagnostics.alerting.saved_states import ensure_standard_rules
from diagnostics.prices.models import Price
from diagnostics.store.aggregation import fold
from diagnostics.store.windows import floor
from tests.console import post_events
from tests.diagnostics.alert_calls import MINUTE, count_calls, count_degraded, degrade
from tests.diagnostics.alerting.notifications.building import happen, make_incident, travel
from tests.diagnostics.builders import wire_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def person(project: Project) -> User:
    user = User.objects.create_user("ada")
    Membership.objects.create(project=project, user=user, role="operator")
    return user


@pytest.fixture
def now() -> datetime:
    """Long enough ago for what comes after it to be no event of the future."""
    return floor(clock.now(), MINUTE) - 90 * MINUTE


@pytest.fixture
def incident(project: Project, now: datetime) -> Incident:
    count_degraded(project.pk)
    degrade(project, now, 3)
    evaluate_project(project.pk, now)
    return Incident.objects.get()


def test_an_incident_whose_verdict_names_nothing_says_what_its_rule_found(
    incident: Incident, person: User, client: Client
) -> None:
    """Three degraded runs are too few for the verdict, and an alert all the same."""
    sentence = incident.latest_verdict.told
    assert sentence
    assert sentence.since == incident.onset
    assert sentence.headline.endswith(": fake/fake-1, 3 of 3 runs.")
    assert sentence.why == "The calls so far do not tell the cause."
    client.force_login(person)
    for address in ("/", "/incidents/", f"/incidents/{incident.pk}/"):
        html = client.get(address).content.decode()
        assert f"{AlertRule.objects.get().name} since" in html
        assert "Not enough data." not in html


def state_of(incident: Incident) -> str:
    return AlertState.objects.get(incidents__incident=incident).state


def test_an_incident_is_acknowledged_once(incident: Incident, person: User) -> None:
    assert acknowledge(incident, person)
    assert not acknowledge(incident, None)
    incident.refresh_from_db()
    assert incident.acknowledged_by == person
    assert state_of(incident) == "acknowledged"
    kinds = Transition.objects.filter(incident=incident).order_by("pk")
    assert [one.kind for one in kinds] == ["fired", "acknowledged"]
    assert AuditEntry.objects.filter(action="incident.acknowledged").count() == 1


@pytest.mark.slow
def test_what_was_resolved_by_hand_stays_quiet_while_it_goes_on(
    project: Project, incident: Incident, person: User, now: datetime
) -> None:
    assert resolve(incident, person, "prompt", "Rolled back.")
    incident.refresh_from_db()
    assert (incident.state, incident.resolution_cause) == ("resolved", "prompt")
    for minute in range(1, 70):
        evaluate_project(project.pk, now + minute * MINUTE)
    assert Incident.objects.count() == 1
    degrade(project, now + 70 * MINUTE, 3)
    evaluate_project(project.pk, now + 71 * MINUTE)
    assert Incident.objects.count() == 2
    assert not resolve(incident, person, "false_alarm")


def test_a_cause_that_nobody_knows_is_refused(incident: Incident) -> None:
    with pytest.raises(IncidentError):
        resolve(incident, None, "weather")


def test_comments_are_redacted_and_kept(incident: Incident, person: User) -> None:
    secret = "sk-ant-" + "a1B2" * 12
    assert comment(incident, person, f"The key {secret} was wrong.")
    assert not comment(incident, person, "  ")
    note = IncidentNote.objects.get(incident=incident)
    assert secret not in note.text
    assert note.by == person


def test_only_members_are_given_incidents(incident: Incident, person: User) -> None:
    assign(incident, person, person)
    assert incident.assignee == person
    with pytest.raises(IncidentError):
        assign(incident, person, User.objects.create_user("stranger"))


def test_only_web_addresses_are_linked(incident: Incident, person: User) -> None:
    link(incident, person, "https://tracker.example.org/issues/7")
    assert incident.tracker_url == "https://tracker.example.org/issues/7"
    for wrong in ("javascript:alert(1)", "ftp://tracker.example.org/7", "issue 7"):
        with pytest.raises(IncidentError):
            link(incident, person, wrong)


def test_a_silence_hides_notifications_and_nothing_else(
    project: Project, person: User, now: datetime
) -> None:
    count_degraded(project.pk)
    row = silence(project.pk, person, now + timedelta(hours=9), text="model=fake-1", starts_at=now)
    degrade(project, now, 3)
    evaluate_project(project.pk, now)
    transition = Transition.objects.get(kind="fired")
    assert transition.is_silenced
    assert transition.incident.state == "open"
    assert end_silence(row, person)
    assert not end_silence(row, person)


def test_alerts_go_on_after_the_clock_was_set_back(project: Project) -> None:
    count_degraded(project.pk)
    # Begins a minute that has ended: the runs are in one minute, and none is ahead of the clock.
    now = floor(clock.now(), MINUTE) - MINUTE
    degrade(project, now, 1)
    travel(timedelta(hours=2))
    assert evaluate() == 1
    travel(timedelta(hours=-2))
    degrade(project, now, 3, model="fake-2")
    assert evaluate() > 0
    assert Incident.objects.get().title.endswith("fake-2")


def test_a_silence_covers_what_it_names_only(project: Project, person: User, now: datetime) -> None:
    count_degraded(project.pk)
    silence(project.pk, person, now + timedelta(hours=9), text="model=other", starts_at=now)
    degrade(project, now, 3)
    evaluate_project(project.pk, now)
    assert not Transition.objects.get(kind="fired").is_silenced


def test_a_silenced_kind_holds_until_another_kind_rises(
    project: Project, person: User, incident: Incident
) -> None:
    until = clock.now() + timedelta(hours=9)
    silence(project.pk, person, until, text="kind:truncated")
    assert not incident.is_silenced(clock.now())
    for risen, quiet in ((["truncated"], True), (["truncated", "refusal"], False)):
        incident.verdict_now = {"since": "2026-11-24T10:00:00Z", "risen": risen}
        assert incident.is_silenced(clock.now()) is quiet


def test_a_rule_on_a_kind_is_silenced_by_its_kind(
    project: Project, person: User, now: datetime
) -> None:
    given = {"signal": "call_failure_ratio", "detector": "threshold"}
    for name, kind in (("a", "not_json"), ("b", "not_json")):
        create_rule(
            project.pk, {**given, "name": name, "filter": f"kind:{kind} model:{name}"}, None
        )
    row = silence(project.pk, person, now + timedelta(hours=9), text="kind:not_json", starts_at=now)
    count_calls(project, now, [0.9], 60, "a-1")
    evaluate_project(project.pk, now)
    assert Transition.objects.get(kind="fired").is_silenced
    row.delete()
    silence(project.pk, person, now + timedelta(hours=9), text="kind:refusal", starts_at=now)
    count_calls(project, now + MINUTE, [0.9], 60, "b-1")
    evaluate_project(project.pk, now + MINUTE)
    assert not Transition.objects.exclude(kind="fired", is_silenced=True).get().is_silenced


def test_an_incident_is_silenced_by_its_calls(
    incident: Incident, person: User, client: Client
) -> None:
    client.force_login(person)
    for address in ("/", f"/incidents/{incident.pk}/"):
        html = client.get(address).content.decode()
        assert '<span class="tag">provider:=fake</span> <span class="tag">model:=fake-1' in html
    row = silence_incident(incident, person, clock.now() + timedelta(hours=2))
    assert row.filter == "provider=fake&model=fake-1"


def test_an_incident_without_a_series_is_silenced_by_its_rule_alone(
    incident: Incident, person: User
) -> None:
    """A silent source, or all calls of one rule: everything else is told of as before."""
    incident.filter = ""
    incident.slices.update(slice={"source": "planner"})
    row = silence_incident(incident, person, clock.now() + timedelta(hours=2))
    assert row.mutes(clock.now(), incident.slices.get().rule_id, {"source": "planner"})
    assert not row.mutes(clock.now(), 0, {"provider": "acme", "model": "m-1"})


@pytest.mark.parametrize(
    ("rule_filter", "is_of_all"),
    [("environment=prod", False), ("kind=refusal", False), ("model=fake-1", True)],
)
def test_what_its_rule_excludes_is_not_silenced_with_an_incident(
    incident: Incident, person: User, client: Client, rule_filter: str, is_of_all: bool
) -> None:
    AlertRule.objects.filter(incident_slices__incident=incident).update(filter=rule_filter)
    client.force_login(person)
    for address in ("/", f"/incidents/{incident.pk}/"):
        assert ("in its rules" in client.get(address).content.decode()) is not is_of_all
    silence_incident(incident, person, clock.now() + timedelta(hours=2))
    assert incident.is_silenced(clock.now())
    row = Silence.objects.get()
    assert row.mutes(clock.now(), 0, {"provider": "fake", "model": "fake-1"}) is is_of_all


def test_a_rule_that_is_deleted_ends_what_it_fires_for(incident: Incident, person: User) -> None:
    archive_rule(AlertRule.objects.get(), person)
    incident.refresh_from_db()
    assert incident.state == "resolved"


@pytest.mark.parametrize("change", [{"filter": "model:=other"}, {"group_by": ["environment"]}])
def test_a_slice_that_its_rule_no_longer_has_ends(
    project: Project, incident: Incident, now: datetime, change: dict[str, Any]
) -> None:
    before = incident.slices.get()
    change_rule(AlertRule.objects.get(), change, None)
    evaluate_project(project.pk, now + MINUTE)
    before.refresh_from_db()
    assert before.cleared_at == now + MINUTE


def test_retry_cost_that_ends_ends_its_incident(project: Project, now: datetime) -> None:
    given = {"signal": "retry_money", "detector": "count", "parameters": {"count": 1}}
    create_rule(project.pk, {**given, "name": "Dear"}, None)
    amounts = {"input_per_million": 100_000, "output_per_million": 100_000}
    names = {"provider": "fake", "model": "fake-1", "valid_from": now.date(), "origin": "own"}
    Price.objects.create(project=project, **names, **amounts)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO diagnostics_rollup_delta (project_id, minute, node, provider, model,"
            " retries, retry_input_tokens) VALUES (%s, %s, 'plan', 'fake', 'fake-1', 1, 100)",
            [project.pk, now - 5 * MINUTE],
        )
    fold()
    evaluate_project(project.pk, now)
    assert Incident.objects.get().state == "open"
    AlertSlot.objects.all().delete()
    evaluate_project(project.pk, now + timedelta(hours=1, minutes=5))
    assert Incident.objects.get().state == "resolved"


def test_a_source_is_missed_for_as_long_as_a_rule_waits(project: Project, now: datetime) -> None:
    given = {"signal": "source_silent", "detector": "absent", "parameters": {"seconds": 9 * 86_400}}
    create_rule(project.pk, {**given, "name": "Away"}, None)
    degrade(project, now - timedelta(days=9, hours=2), 1, source="planner")
    degrade(project, now - timedelta(days=1), 1, source="other")
    evaluate_project(project.pk, now)
    assert Incident.objects.get().title == "source planner"


def test_a_rule_that_is_disabled_ends_what_it_fires_for(
    incident: Incident, person: User, client: Client
) -> None:
    Membership.objects.update(role="admin")
    client.force_login(person)
    client.post(f"/alerts/rules/{AlertRule.objects.get().pk}/switch/")
    incident.refresh_from_db()
    assert incident.state == "resolved"


def test_incidents_of_other_projects_are_not_found(incident: Incident) -> None:
    other = Project.objects.create(slug="q", name="Q")
    with pytest.raises(Http404):
        incident_of(other.pk, incident.pk)
    assert incident_of(incident.project_id, incident.pk) == incident


def test_a_level_that_has_become_usual_ends_its_incident_and_says_so(
    incident: Incident, now: datetime
) -> None:
    state = AlertState.objects.get(incidents__incident=incident)
    clear_slices({state.pk: True}, now + 60 * MINUTE)
    incident.refresh_from_db()
    assert incident.state == "resolved"
    assert incident.resolution_cause == "new_usual_level"
    cleared = incident.transitions.get(kind="cleared")
    facts = facts_of(Notice(incident, cleared, Reason.RECOVERED, "warning", now))
    assert headline_of(facts).startswith("New baseline after ")
    assert "did not drop" in lead_of(facts)


def test_an_alert_shows_runs_with_failures_before_they_have_ended(project: Project) -> None:
    incident, now = make_incident(project, filter="provider=fake"), clock.now()
    for reference, attempt in (("a", 1), ("a", 2), ("b", 1)):
        at = (now - MINUTE).isoformat()
        event = wire_event(correlation_id=reference, attempt=attempt, occurred_at=at)
        post_events(project, event)
    happen(incident)
    notice = Notice(incident, incident.transitions.get(), Reason.FIRED, "warning", now)
    assert sorted(sample.reference for sample in facts_of(notice).samples) == ["a", "b"]


def test_what_got_better_is_given_no_cause(incident: Incident, now: datetime) -> None:
    state = AlertState.objects.get(incidents__incident=incident)
    clear_slices({state.pk: False}, now + 60 * MINUTE)
    incident.refresh_from_db()
    assert (incident.state, incident.resolution_cause) == ("resolved", None)
    cleared = incident.transitions.get(kind="cleared")
    facts = facts_of(Notice(incident, cleared, Reason.RECOVERED, "warning", now))
    assert headline_of(facts).startswith("Resolved after ")


def test_the_rule_that_is_no_longer_built_in_ends_where_nobody_changed_it(
    project: Project, incident: Incident
) -> None:
    retire = import_module("diagnostics.migrations.0002_since_0_1_0").RETIRE
    AlertRule.objects.update(standard="degraded_count", version=2)
    with connection.cursor() as cursor:
        cursor.execute(retire)
        assert AlertRule.objects.get().archived_at is None
        AlertRule.objects.update(version=1)
        cursor.execute(retire)
    assert AlertRule.objects.get().archived_at is not None
    incident.refresh_from_db()
    assert (incident.state, incident.cleared_at is None) == ("resolved", False)
    assert not incident.slices.filter(cleared_at=None).exists()


def test_the_built_in_rule_is_renamed_where_nobody_has_named_it(project: Project) -> None:
    rename = import_module("diagnostics.migrations.0002_since_0_1_0").RENAME
    ensure_standard_rules()
    rows = AlertRule.objects.filter(standard="change")
    for name, after in (("Mine", "Mine"), ("Worse than usual", "Failure rate above baseline")):
        rows.update(name=name)
        with connection.cursor() as cursor:
            cursor.execute(rename)
        assert rows.get().name == after
    create_rule(project.pk, {"name": "Worse than usual"}, None)
    with connection.cursor() as cursor:
        cursor.execute(rename)
    assert AlertRule.objects.filter(name="Worse than usual").exists()

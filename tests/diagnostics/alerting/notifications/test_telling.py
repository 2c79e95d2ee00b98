"""Who is told of what: routing, silences, quiet hours, digests, reminders, escalation."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, time, timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting import reminders
from diagnostics.alerting.delivery import deliver_all
from diagnostics.alerting.incident_actions import acknowledge, silence
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.notification_facts import Facts
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.notification_rows import queue_alone
from diagnostics.alerting.reminders import remind_all, send_canaries
from tests.console import make_member
from tests.diagnostics.alerting.notifications.building import (
    Hook,
    at_rest,
    happen,
    make_channel,
    make_incident,
    make_rule,
    travel,
)

pytestmark = pytest.mark.django_db
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def reasons(**fields: object) -> list[str]:
    rows = Notification.objects.filter(**fields).order_by("pk")
    return list(rows.values_list("reason", flat=True))


def test_a_rule_names_its_channels_else_all_are_told(project: Project) -> None:
    one, two = make_channel(project), make_channel(project)
    happen(make_incident(project))
    assert Notification.objects.count() == 2
    rule = make_rule(project, routing=[two.pk])
    (row,) = happen(make_incident(project, "other", rule=rule))
    assert row.channel == two
    assert one.notifications.count() == 1


def test_a_slice_that_joins_tells_the_channels_of_its_rule_once(project: Project) -> None:
    ops, data = make_channel(project), make_channel(project)
    incident = make_incident(project, rule=make_rule(project, routing=[ops.pk]))
    happen(incident)
    for _ in range(2):
        other = make_incident(project, rule=make_rule(project, routing=[data.pk]))
        other.slices.update(incident=incident)
        happen(incident, "joined")
    assert reasons(channel=data, incident=incident) == ["fired"]
    assert reasons(channel=ops, incident=incident) == ["fired"]


def test_a_recovery_goes_to_the_channel_that_the_incident_was_escalated_to(
    project: Project, hook: tuple[Hook, str]
) -> None:
    boss = make_channel(project, "webhook", hook[1], digest_above=1)
    rule = make_rule(
        project, routing=[make_channel(project).pk], escalate_seconds=900, escalation=[boss.pk]
    )
    incident = make_incident(project, rule=rule)
    happen(incident)
    travel(16 * MINUTE)
    remind_all()
    happen(incident, "cleared")
    assert reasons(channel=boss, state="queued") == ["escalated", "recovered"]


def test_a_channel_of_another_project_is_never_told(project: Project) -> None:
    other = Project.objects.create(slug="p2", name="P2")
    theirs = make_channel(other)
    rule = make_rule(project, routing=[theirs.pk])
    assert happen(make_incident(project, rule=rule)) == []


def test_a_rule_whose_channel_was_deleted_tells_all_again(project: Project) -> None:
    left, gone = make_channel(project), make_channel(project)
    rule = make_rule(project, routing=[gone.pk])
    gone.delete()
    (row,) = happen(make_incident(project, rule=rule))
    assert row.channel == left


def test_an_incident_whose_rule_was_deleted_tells_all(project: Project) -> None:
    channel, rule = make_channel(project), make_rule(project)
    incident = make_incident(project, rule=rule)
    rule.delete()
    (row,) = happen(incident)
    assert row.channel == channel


def test_what_is_silenced_is_kept_back_with_its_reason_and_so_is_its_recovery(
    project: Project,
) -> None:
    make_channel(project)
    incident = make_incident(project)
    (row,) = happen(incident, silenced=True)
    assert (row.state, "silence" in row.why) == ("suppressed", True)
    (over,) = happen(incident, "cleared")
    assert over.state == "suppressed"
    assert deliver_all() == 0


def test_an_incident_of_the_past_tells_nobody(project: Project) -> None:
    make_channel(project)
    assert happen(make_incident(project, is_backfilled=True)) == []


def test_an_incident_that_cannot_be_told_again_holds_up_no_other(
    project: Project, hook: tuple[Hook, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now()
    begin, end = (now - HOUR).time(), (now + HOUR).time()
    make_channel(
        project, "webhook", hook[1], quiet_from=time(begin.hour), quiet_to=time(end.hour, 59)
    )
    first, second = make_incident(project), make_incident(project, "other")
    for one in (first, second):
        happen(one)
    travel(4 * HOUR)

    is_silenced = Incident.is_silenced

    def fail_for_first(incident: Incident, now: datetime) -> bool:
        if incident.pk == first.pk:
            raise ZeroDivisionError
        return is_silenced(incident, now)

    monkeypatch.setattr(Incident, "is_silenced", fail_for_first)
    assert remind_all() == 1


def test_an_escalation_after_a_silence_waits_for_its_time_from_when_the_silence_ended(
    project: Project,
) -> None:
    boss = make_channel(project, name="boss")
    ops = make_channel(project, escalate_to=boss, escalate_after_minutes=15)
    rule = make_rule(project, routing=[ops.pk])
    silence(project.pk, None, clock.now() + HOUR, text="model=claude-haiku")
    happen(make_incident(project, rule=rule), silenced=True)
    travel(61 * MINUTE)
    assert [remind_all(), remind_all()] == [1, 0]
    assert (reasons(channel=ops, state="queued"), reasons(channel=boss)) == (["reminder"], [])
    travel(15 * MINUTE)
    assert [remind_all(), remind_all()] == [1, 0]
    assert reasons(channel=boss) == ["escalated"]


def test_what_fires_again_escalates_as_many_minutes_after_it_did(project: Project) -> None:
    boss = make_channel(project, name="boss")
    ops = make_channel(project, escalate_to=boss, escalate_after_minutes=15)
    incident = make_incident(project, rule=make_rule(project, routing=[ops.pk]))
    happen(incident)
    travel(5 * MINUTE)
    happen(incident, "cleared")
    travel(30 * MINUTE)
    incident.state, incident.cleared_at = Incident.State.OPEN, None
    incident.save()
    happen(incident, "reopened")
    travel(14 * MINUTE)
    assert remind_all() == 0
    travel(2 * MINUTE)
    assert [remind_all(), remind_all()] == [1, 0]
    assert reasons(channel=boss) == ["escalated"]


def test_a_channel_that_is_escalated_to_is_not_reminded_at_the_same_time(project: Project) -> None:
    now = clock.now()
    begin, end = (now - HOUR).time(), (now + HOUR).time()
    boss = make_channel(project, quiet_from=time(begin.hour), quiet_to=time(end.hour, 59))
    make_channel(project, escalate_to=boss, escalate_after_minutes=15)
    happen(make_incident(project))
    travel(4 * HOUR)
    assert [remind_all(), remind_all()] == [1, 0]
    assert reasons(channel=boss, state="queued") == ["escalated"]


def test_a_series_that_joins_and_raises_the_severity_tells_each_channel_once(
    project: Project,
) -> None:
    ops, data = make_channel(project), make_channel(project)
    incident = make_incident(project, rule=make_rule(project, routing=[ops.pk]))
    happen(incident)
    other = make_incident(project, rule=make_rule(project, routing=[data.pk]))
    other.slices.update(incident=incident)
    at = clock.now()
    for kind in ("joined", "worsened"):
        happen(incident, kind, at=at)
    assert reasons(channel=data, incident=incident) == ["fired"]
    assert reasons(channel=ops, incident=incident) == ["fired", "worsened"]


def test_what_quiet_hours_held_back_is_told_when_they_end(
    project: Project, hook: tuple[Hook, str]
) -> None:
    now = clock.now()
    begin, end = (now - HOUR).time(), (now + HOUR).time()
    channel = make_channel(
        project, "webhook", hook[1], quiet_from=time(begin.hour), quiet_to=time(end.hour, 59)
    )
    (row,) = happen(make_incident(project))
    assert row.why.startswith("quiet hours")
    assert remind_all() == 0
    travel(4 * HOUR)
    assert remind_all() == 1
    assert remind_all() == 0
    deliver_all()
    assert [one["type"] for one in hook[0].bodies()] == ["incident.reminder"]
    assert channel.notifications.filter(state="sent").count() == 1


def test_an_escalation_waits_for_the_end_of_quiet_hours(project: Project) -> None:
    now = clock.now()
    begin, end = (now - HOUR).time(), (now + HOUR).time()
    boss = make_channel(project, quiet_from=time(begin.hour), quiet_to=time(end.hour, 59))
    rule = make_rule(
        project, routing=[make_channel(project).pk], escalate_seconds=900, escalation=[boss.pk]
    )
    happen(make_incident(project, rule=rule))
    travel(16 * MINUTE)
    assert remind_all() == 0
    travel(4 * HOUR)
    assert [remind_all(), remind_all()] == [1, 0]
    assert reasons(channel=boss, state="queued") == ["escalated"]


@pytest.mark.slow
def test_beyond_ten_an_hour_the_rest_comes_in_one_digest(
    project: Project, hook: tuple[Hook, str]
) -> None:
    make_channel(project, "webhook", hook[1])
    for number in range(14):
        happen(make_incident(project, f"m-{number}"))
    assert Notification.objects.filter(state="digested").count() == 4
    deliver_all()
    assert len(hook[0].seen) == 10
    travel(6 * MINUTE)
    deliver_all()
    (digest,) = hook[0].bodies()[10:]
    assert digest["type"] == "digest"
    assert len(digest["data"]["alerts"]) == 4
    assert digest["data"]["verdict"].startswith("4 alerts: ")


def test_reminders_come_until_somebody_acknowledges(project: Project) -> None:
    make_channel(project, renotify_minutes=30)
    incident = make_incident(project)
    happen(incident)
    assert remind_all() == 0
    for _ in range(2):
        travel(30 * MINUTE)
        assert remind_all() == 1
        assert remind_all() == 0
    acknowledge(incident, make_member(project))
    travel(30 * MINUTE)
    assert remind_all() == 0
    assert reasons(incident=incident) == ["fired", "reminder", "reminder"]
    rounds = incident.notifications.order_by("pk").values_list("round", flat=True)
    assert list(rounds) == [0, 1, 2]


def test_a_silence_holds_reminders_back_while_it_lasts(project: Project) -> None:
    make_channel(project, renotify_minutes=30)
    incident = make_incident(project)
    happen(incident)
    until = clock.now() + HOUR
    silence(project.pk, None, until, text="model=claude-haiku", reason="known")
    travel(45 * MINUTE)
    assert remind_all() == 0
    travel(30 * MINUTE)
    assert remind_all() == 1


def test_what_fired_under_a_silence_is_told_once_when_the_silence_ends(project: Project) -> None:
    make_channel(project)
    incident = make_incident(project)
    silence(project.pk, None, clock.now() + HOUR, text="model=claude-haiku")
    happen(incident, silenced=True)
    travel(30 * MINUTE)
    assert remind_all() == 0
    travel(31 * MINUTE)
    assert remind_all() == 1
    assert remind_all() == 0
    told = incident.notifications.order_by("pk").last()
    assert told is not None
    assert (told.reason, told.state) == ("reminder", "queued")
    assert "A silence held it back" in told.facts["note"]


def test_what_fired_under_a_silence_and_is_over_when_it_ends_is_not_told(project: Project) -> None:
    make_channel(project)
    incident = make_incident(project)
    silence(project.pk, None, clock.now() + HOUR, text="model=claude-haiku")
    happen(incident, silenced=True)
    happen(incident, "cleared", silenced=True)
    Incident.objects.update(state="resolved", cleared_at=clock.now())
    travel(2 * HOUR)
    assert remind_all() == 0


def test_what_got_worse_under_a_silence_is_told_when_the_silence_ends(project: Project) -> None:
    make_channel(project, min_severity="critical")
    incident = make_incident(project)
    happen(incident)
    silence(project.pk, None, clock.now() + HOUR, text="model=claude-haiku")
    incident.severity = "critical"
    incident.save()
    happen(incident, "worsened", silenced=True)
    travel(61 * MINUTE)
    assert [remind_all(), remind_all()] == [1, 0]


def test_a_channel_that_wants_less_now_has_one_row_a_reminder(project: Project) -> None:
    channel = make_channel(project, renotify_minutes=30)
    happen(make_incident(project))
    channel.min_severity = "critical"
    channel.save()
    travel(30 * MINUTE)
    assert [remind_all(), remind_all()] == [1, 0]


def test_what_nobody_acknowledges_goes_on_once(project: Project) -> None:
    boss = make_channel(project, name="boss", min_severity="critical")
    make_channel(project, escalate_to=boss, escalate_after_minutes=15)
    incident = make_incident(project, rule=make_rule(project, severity="critical"))
    happen(incident)
    travel(14 * MINUTE)
    assert remind_all() == 0
    travel(2 * MINUTE)
    assert remind_all() == 1
    travel(HOUR)
    assert remind_all() == 0
    assert reasons(channel=boss) == ["fired", "escalated"]


def test_a_rule_may_remind_and_escalate_on_its_own(project: Project) -> None:
    boss = make_channel(project, name="boss")
    ops = make_channel(project, name="ops")
    rule = make_rule(
        project, routing=[ops.pk], renotify_seconds=600, escalate_seconds=900, escalation=[boss.pk]
    )
    happen(make_incident(project, rule=rule))
    travel(10 * MINUTE)
    assert remind_all() == 1
    travel(6 * MINUTE)
    assert remind_all() == 1
    assert reasons(channel=ops) == ["fired", "reminder"]
    assert reasons(channel=boss) == ["escalated"]


def test_a_canary_goes_once_a_day_to_channels_that_want_it(
    project: Project, hook: tuple[Hook, str]
) -> None:
    make_channel(project, "webhook", hook[1], has_canary=True)
    make_channel(project, "webhook", hook[1])
    assert [send_canaries(), send_canaries()] == [1, 0]
    deliver_all()
    assert [one["type"] for one in hook[0].bodies()] == ["canary"]
    travel(25 * HOUR)
    assert send_canaries() == 1


def test_a_canary_waits_for_the_end_of_quiet_hours(project: Project) -> None:
    now = clock.now()
    begin, end = (now - HOUR).time(), (now + HOUR).time()
    rest = time(begin.hour), time(end.hour, 59)
    make_channel(project, has_canary=True, quiet_from=rest[0], quiet_to=rest[1])
    assert send_canaries() == 0
    travel(4 * HOUR)
    assert [send_canaries(), send_canaries()] == [1, 0]


@pytest.mark.django_db(transaction=True)
def test_two_workers_send_a_canary_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    make_channel(project, has_canary=True)
    both_look = Barrier(2)

    def write_facts(**fields: Any) -> Facts:
        both_look.wait(30)
        return Facts(**fields)

    def send() -> int:
        with closing(connection):
            return send_canaries()

    monkeypatch.setattr(reminders, "Facts", write_facts)
    with ThreadPoolExecutor(2) as workers:
        assert sum(workers.map(lambda _: send(), range(2))) == 1
    assert reasons() == ["canary"]


def test_a_test_is_tried_once_and_its_answer_kept(project: Project, hook: tuple[Hook, str]) -> None:
    channel = make_channel(project, "webhook", hook[1])
    facts = Facts(reason="test", project="P1", at=clock.now())
    row = queue_alone(channel, facts)
    deliver_all()
    assert (at_rest(row).state, row.answer) == ("sent", "200 ok")
    hook[0].status = 400
    row = queue_alone(channel, facts)
    deliver_all()
    assert (at_rest(row).state, "400" in row.last_error) == ("failed", True)


def test_a_channel_that_is_off_can_be_tested(project: Project, hook: tuple[Hook, str]) -> None:
    channel = make_channel(project, "webhook", hook[1], enabled=False)
    row = queue_alone(channel, Facts(reason="test", project="P1", at=clock.now()))
    deliver_all()
    assert at_rest(row).state == "sent"


def test_a_share_of_slow_calls_is_no_rate_of_failures(project: Project) -> None:
    make_channel(project)
    rule = make_rule(project, signal="latency_p95", detector="threshold")
    (row,) = happen(make_incident(project, rule=rule, verdict={}))
    assert row.facts["rate"] is None

"""Due, made, sent, tried again: reports through a real SMTP server on this machine."""

import re
import socket
import time
from datetime import timedelta
from html import unescape
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.utils.html import strip_tags

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Membership, Project, SavedView
from diagnostics.accounts.projects import issue_key
from diagnostics.alerting import incident_actions
from diagnostics.failures.models import FailureGroup
from diagnostics.failures.states import resolve
from diagnostics.ingest.key_counts import forget_old_counts
from diagnostics.ingest.models import KeyMinute
from diagnostics.reports.archive import archive_last_days, purge_old, report_for
from diagnostics.reports.models import Report, ReportDelivery, Subscription
from diagnostics.reports.periods import ReportPeriod
from diagnostics.reports.queries import ReportSubject, summarise
from diagnostics.reports.sending import Rendered, claim, prepare, send_copies, send_waiting
from diagnostics.reports.subscriptions import due, pause, schedule_of, unsubscribe
from diagnostics.store.aggregation import fold
from tests.console import post_runs
from tests.diagnostics.alerting.notifications.building import happen, make_incident
from tests.diagnostics.reports.conftest import MailServer, make_subscription

pytestmark = pytest.mark.django_db
State = ReportDelivery.State
HALF_A_DAY = timedelta(hours=12)
HOSTILE = "x\r\nBcc: a@b"


def run_badly(subscription: Subscription, model: str) -> None:
    """Let half of the runs of a model degrade, at noon of the period that is due."""
    noon = schedule_of(subscription).latest(clock.now()).period.since + HALF_A_DAY
    post_runs(subscription.project, 60, 0, noon - timedelta(days=1), model=model)
    post_runs(subscription.project, 20, 0, noon - timedelta(minutes=5), model=model)
    post_runs(subscription.project, 0, 20, noon, model=model)
    fold()


def test_a_report_is_sent_once_however_often_it_is_asked_for(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    make_subscription(project, ann)
    now = clock.now()
    assert [due(now), due(now), due(now)] == [1, 0, 0]
    assert [send_waiting(), send_waiting()] == [1, 0]
    assert mail_server.recipients == [["ann@example.org"]]
    delivery = ReportDelivery.objects.get()
    assert (delivery.state, delivery.tries) == (State.SENT, 1)
    assert delivery.report == Report.objects.get()


def test_m_9_what_is_due_is_one_mail_with_the_figures_of_each_model(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    subscription = make_subscription(project, ann)
    run_badly(subscription, "haiku-4")
    run_badly(subscription, "sonnet-4")
    now = clock.now()
    for _ in range(2):
        due(now)
        send_waiting()
    (mail,) = mail_server.mails
    for kind in ("plain", "html"):
        part = mail.get_body((kind,))
        assert part is not None
        text = " ".join(strip_tags(unescape(part.get_content())).split())
        for model in ("haiku-4", "sonnet-4"):
            # The figures of a table's cells touch where its tags were.
            assert re.search(rf"fake/{model}\D.{{0,99}}?40(?: \| )?50\.0 %", text)


def test_s15_a_hostile_model_is_one_recipient_and_one_subject(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    run_badly(make_subscription(project, ann), HOSTILE)
    due(clock.now())
    send_waiting()
    (found,) = mail_server.mails
    assert mail_server.recipients == [["ann@example.org"]]
    assert len(found.get_all("Subject", [])) == 1
    assert found["Bcc"] is None
    assert "x Bcc: a@b" in found["Subject"]


def test_a_mail_says_who_it_is_from_and_how_to_end_it(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    subscription = make_subscription(project, ann)
    due(clock.now())
    send_waiting()
    (found,) = mail_server.mails
    assert found["Auto-Submitted"] == "auto-generated"
    assert found["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert "/reports/unsubscribe/" in found["List-Unsubscribe"]
    assert f"report-{project.pk}-{subscription.pk}-" in found["Message-ID"]


def test_one_report_serves_all_who_want_the_same(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    make_subscription(project, ann)
    for at in range(5):
        make_subscription(project, address=f"out{at}@example.org")
    make_subscription(project, address="utc@example.org", zone="UTC")
    due(clock.now())
    assert send_waiting() == 7
    assert Report.objects.count() == 2


def test_after_a_downtime_one_report_lists_what_was_passed_over(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    subscription = make_subscription(project, ann)
    subscription.next_at -= timedelta(days=3)
    subscription.save()
    assert due(clock.now()) == 1
    assert len(ReportDelivery.objects.get().skipped) == 3
    send_waiting()
    body = mail_server.mails[0].get_body(("plain",))
    assert body is not None
    assert "3 earlier reports skipped" in body.get_content()


def test_the_first_weekly_report_after_daily_ones_is_sent(project: Project, ann: User) -> None:
    made = make_subscription(project, ann, cadence="weekly", weekday=clock.now().weekday())
    period = schedule_of(made).latest(clock.now()).period
    # What was sent of the first day of that week, before the cadence was changed.
    ReportDelivery.objects.create(
        project=project,
        subscription=made,
        period_start=period.since,
        period_end=period.since + timedelta(days=1),
        state=State.SENT,
        next_attempt_at=clock.now(),
        created_at=clock.now(),
        message_id="<1@example.org>",
    )
    assert due(clock.now()) == 1
    assert ReportDelivery.objects.filter(state=State.WAITING, period_end=period.until).exists()


def test_a_report_of_a_filter_has_its_own_incidents_and_failures(project: Project) -> None:
    now = clock.now()
    for number, model in enumerate(["m-1"] * 9 + ["m-2"]):
        kind = {"name": f"graph.n{number}.degraded", "node": f"n{number}", "reason": "timeout"}
        post_runs(project, 0, 1, now, model=model, **kind)
    fold()
    make_incident(project, "m-1")
    make_incident(project, "m-2")
    groups = FailureGroup.objects.filter(project=project)
    resolve(project.pk, [groups.get(node=f"n{number}").pk for number in (8, 9)], None)
    today = now.date()
    period = ReportPeriod(today, today + timedelta(days=1), ZoneInfo("UTC"))
    document = summarise(ReportSubject(project, "P", "model=m-1", "daily", period), now)
    assert document.incidents is not None
    assert [one.title for one in document.incidents.entries] == ["anthropic/m-1"]
    resolved = [one.text for one in document.groups if one.state == "resolved"]
    assert resolved == ["timeout, node n8"]
    # Five of eight new ones are listed, one resolved.
    assert (len(document.groups), document.more_groups) == (6, 3)


def test_an_incident_that_recovered_was_not_ended_by_who_named_its_cause(
    project: Project, ann: User
) -> None:
    recovered, ended = make_incident(project, "m-1"), make_incident(project, "m-2")
    happen(recovered, "cleared")
    incident_actions.resolve(recovered, ann, "provider")
    incident_actions.resolve(ended, "a key", "provider")
    now = clock.now()
    period = ReportPeriod(now.date(), now.date() + timedelta(days=1), ZoneInfo("UTC"))
    document = summarise(ReportSubject(project, "P", "", "daily", period), now)
    assert document.incidents is not None
    endings = {one.title: one.ending for one in document.incidents.entries}
    assert endings == {"anthropic/m-1": "automatically", "anthropic/m-2": "by an API key"}


def test_the_cause_of_an_incident_has_its_times_in_the_zone_of_the_report(project: Project) -> None:
    make_incident(project, "m-1")
    now = clock.now()
    period = ReportPeriod(now.date(), now.date() + timedelta(days=1), ZoneInfo("Asia/Tokyo"))
    document = summarise(ReportSubject(project, "P", "", "daily", period), now)
    assert document.incidents is not None
    (entry,) = document.incidents.entries
    assert re.search(r"last deploy at .* \d\d:\d\d Asia/Tokyo\.$", entry.cause)


def test_a_report_of_a_month_counts_what_was_rejected_on_its_first_day(project: Project) -> None:
    now = clock.now()
    today = now.date()
    period = ReportPeriod(today - timedelta(days=31), today, ZoneInfo("UTC"))
    key = issue_key(project, "agent", [Scope.INGEST]).row
    KeyMinute.objects.create(project=project, api_key=key, minute=period.since, rejected=3)
    forget_old_counts()
    document = summarise(ReportSubject(project, "P", "", "monthly", period), now)
    assert document.quality.rejected == 3


def test_the_total_of_a_report_has_the_models_that_it_has_no_room_for(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now()
    post_runs(project, 5, 0, now, model="m-1")
    post_runs(project, 3, 0, now, model="m-2")
    fold()
    monkeypatch.setattr("diagnostics.reports.queries.MOST_MODELS", 1)
    period = ReportPeriod(now.date(), now.date() + timedelta(days=1), ZoneInfo("UTC"))
    document = summarise(ReportSubject(project, "P", "", "daily", period), now)
    assert [one.runs for one in (document.total, *document.models)] == [8, 5]


def test_while_paused_nothing_is_sent_and_nothing_made_up_for(project: Project, ann: User) -> None:
    subscription = make_subscription(project, ann)
    pause(subscription, ann)
    assert due(clock.now()) == 0
    subscription.refresh_from_db()
    assert subscription.next_at > clock.now()
    assert not ReportDelivery.objects.exists()


def test_nothing_new_is_not_sent_to_who_wants_changes_only(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    make_subscription(project, ann, only_when_changed=True)
    due(clock.now())
    assert send_waiting() == 0
    assert ReportDelivery.objects.get().state == State.UNCHANGED


def test_changes_are_sent_to_who_wants_changes_only(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    run_badly(make_subscription(project, ann, only_when_changed=True), "haiku")
    due(clock.now())
    assert send_waiting() == 1


def test_who_lost_the_project_gets_nothing(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    make_subscription(project, ann)
    due(clock.now())
    Membership.objects.all().delete()
    assert send_waiting() == 0
    assert ReportDelivery.objects.get().state == State.NO_ACCESS


def test_who_unsubscribed_meanwhile_gets_nothing(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    subscription = make_subscription(project, ann)
    due(clock.now())
    unsubscribe(subscription, ann)
    assert send_waiting() == 0
    assert ReportDelivery.objects.get().state == State.CANCELLED
    assert due(clock.now()) == 0


def test_a_server_that_is_down_is_tried_again_under_the_same_id(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    make_subscription(project, ann)
    due(clock.now())
    mail_server.refuse = "451 later"
    assert send_waiting() == 0
    waiting = ReportDelivery.objects.get()
    assert (waiting.state, waiting.tries) == (State.WAITING, 1)
    assert waiting.next_attempt_at > clock.now() + timedelta(seconds=50)
    assert "451" in waiting.last_error
    mail_server.refuse = ""
    ReportDelivery.objects.update(next_attempt_at=clock.now())
    assert send_waiting() == 1
    assert mail_server.mails[0]["Message-ID"] == waiting.message_id


@pytest.mark.parametrize("place", ["refuse", "refuse_text"])
@pytest.mark.parametrize(
    ("refusal", "tries"), [("550 no such user", 1), ("451 later", 6)], ids=["550", "451"]
)
def test_what_is_never_taken_is_given_up_in_the_words_of_the_server(
    project: Project, ann: User, mail_server: MailServer, refusal: str, tries: int, place: str
) -> None:
    make_subscription(project, ann)
    due(clock.now())
    setattr(mail_server, place, refusal)
    for _ in range(8):
        send_waiting()
        ReportDelivery.objects.update(next_attempt_at=clock.now())
    found = ReportDelivery.objects.get()
    assert (found.state, found.tries, found.last_error) == (State.FAILED, tries, refusal)


def test_a_person_without_an_address_is_a_failure_that_shows(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    ann.email = ""
    ann.save()
    make_subscription(project, ann)
    due(clock.now())
    send_waiting()
    found = ReportDelivery.objects.get()
    assert found.state == State.FAILED
    assert "no mail address" in found.last_error


def test_two_senders_share_the_work(project: Project, ann: User, mail_server: MailServer) -> None:
    make_subscription(project, ann)
    due(clock.now())
    now = clock.now()
    first = claim(now)
    assert (len(first), claim(now)) == (1, [])
    # The lease ends, another takes over: what the first says then changes nothing.
    second = claim(now + timedelta(minutes=16))
    assert send_copies(prepare(second, Rendered())) == 1
    assert send_copies(prepare(first, Rendered())) == 0
    ids = {mail["Message-ID"] for mail in mail_server.mails}
    assert len(ids) == 1


def test_many_mails_of_one_project_do_not_hold_up_the_mail_of_another(
    project: Project, ann: User
) -> None:
    for _ in range(4):
        make_subscription(project, ann)
    due(clock.now())
    other = Project.objects.create(slug="other", name="Other")
    Membership.objects.create(project=other, user=ann, role="viewer")
    make_subscription(other, ann)
    due(clock.now())
    assert {delivery.project for delivery in claim(clock.now(), 2)} == {project, other}
    assert [delivery.project for delivery in claim(clock.now(), 9)] == [project] * 3


def test_a_project_whose_reports_take_too_long_holds_up_no_other(
    project: Project, ann: User, mail_server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for query in ("", "provider=acme", "model=m-1"):
        make_subscription(project, ann, query=query)
    other = Project.objects.create(slug="other", name="Other")
    Membership.objects.create(project=other, user=ann, role="viewer")
    make_subscription(other, ann)
    due(clock.now())
    begun = []

    def render(subject: ReportSubject, view: SavedView | None) -> Report:
        begun.append(subject.project)
        if subject.project == project:
            time.sleep(30)
        return report_for(subject, view)

    monkeypatch.setattr("diagnostics.reports.sending.report_for", render)
    monkeypatch.setattr("diagnostics.reports.sending.RENDER_SECONDS", 5.0)
    assert send_waiting() == 1
    assert len(mail_server.mails) == 1
    assert sorted(one.slug for one in begun) == sorted([project.slug, "other"])
    late = ReportDelivery.objects.filter(project=project)
    assert {(one.state, one.tries, one.lease_until) for one in late} == {(State.WAITING, 1, None)}
    assert {one.last_error for one in late} == {
        "ReportTimeoutError: a report of this project took too long"
    }


def test_a_mail_server_that_hangs_costs_only_the_mails_it_was_tried_with(
    project: Project, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(5):
        make_subscription(project, address=f"out{at}@example.org")
    due(clock.now())
    monkeypatch.setattr("diagnostics.reports.sending.MOST_SECONDS", 3.0)
    settings.EMAIL_BACKEND, settings.EMAIL_TIMEOUT = "diagnostics.outbound.smtp.EmailBackend", 2
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.EMAIL_HOST, settings.EMAIL_PORT = silent.getsockname()
        assert send_waiting() == 0
    found = ReportDelivery.objects.filter(state=State.WAITING, lease_until=None).order_by("pk")
    assert [one.tries for one in found] == [1, 1, 0, 0, 0]


def test_a_subscription_that_cannot_be_read_holds_up_no_other(project: Project, ann: User) -> None:
    make_subscription(project, ann)
    Subscription.objects.update(zone="Mars/Olympus")
    make_subscription(project, address="out@example.org")
    assert due(clock.now()) == 1


def test_before_sending_the_number_of_statements_does_not_grow(
    project: Project, django_assert_max_num_queries: object
) -> None:
    for at in range(30):
        make_subscription(project, address=f"out{at}@example.org")
    due(clock.now())
    claimed = claim(clock.now())
    with django_assert_max_num_queries(43):  # type: ignore[operator]
        assert len(list(prepare(claimed, Rendered()))) == 30


def test_old_reports_and_deliveries_are_deleted(
    project: Project, ann: User, mail_server: MailServer
) -> None:
    make_subscription(project, ann)
    due(clock.now())
    send_waiting()
    assert purge_old() == 0
    ReportDelivery.objects.update(created_at=clock.now() - timedelta(days=91))
    Report.objects.update(created_at=clock.now() - timedelta(days=401))
    assert purge_old() == 2


def test_a_report_is_archived_without_a_mail(project: Project, mail_server: MailServer) -> None:
    made = archive_last_days(project, clock.now())
    assert archive_last_days(project, clock.now()) == made
    assert made.subject == "Planner weekly: no runs"
    assert mail_server.mails == []

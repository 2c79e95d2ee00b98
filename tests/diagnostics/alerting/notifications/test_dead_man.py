"""A dead man's switch: banner, ping, check_alerter."""

import json
from datetime import time, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from diagnostics import clock
from diagnostics.accounts.models import Membership, Project
from diagnostics.alerting.dead_man import alarm_of, find_faults, ping_outside
from diagnostics.alerting.delivery import deliver_all
from diagnostics.alerting.notification_models import Notification
from diagnostics.reports.models import ReportDelivery, Subscription
from diagnostics.store.models import Heartbeat, ProjectTurn
from tests.console import make_member
from tests.diagnostics.alerting.notifications.building import (
    Hook,
    happen,
    make_channel,
    make_incident,
    travel,
)

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def watched(project: Project) -> Project:
    Heartbeat.objects.create(name="evaluator", at=clock.now())
    return project


def give_up(project: Project) -> Notification:
    make_channel(project)
    (row,) = happen(make_incident(project))
    Notification.objects.filter(pk=row.pk).update(state="failed", last_error="no")
    return row


def test_three_minutes_without_a_look_show_on_every_page(watched: Project, client: Client) -> None:
    client.force_login(make_member(watched))
    assert "Alerting is not running" not in client.get("/alerts/rules/").content.decode()
    travel(3 * MINUTE + timedelta(seconds=1))
    for path in ("/", "/runs/", "/alerts/rules/", "/account/"):
        assert "Alerting is not running" in client.get(path).content.decode()


def test_a_project_that_was_never_looked_at_is_told_so_after_ten_minutes(project: Project) -> None:
    assert not alarm_of(project.pk).is_raised
    travel(11 * MINUTE)
    assert alarm_of(project.pk).silent_for is not None


def test_what_was_passed_over_for_three_minutes_shows_on_the_pages_of_its_project(
    watched: Project, client: Client
) -> None:
    client.force_login(make_member(watched))
    now = clock.now()
    turn = ProjectTurn.objects.create(
        project=watched, minute=now, began_at=now, ended_at=now, judged_at=now
    )
    turn.passed_over = ["statuses", "alerts"]
    turn.save()
    assert not alarm_of(watched.pk).is_raised
    ProjectTurn.objects.update(judged_at=now - 4 * MINUTE)
    page = client.get("/").content.decode()
    assert "Not judged in full since" in page
    assert "Passed over in the latest turn: statuses, alerts." in page
    assert not alarm_of(Project.objects.create(slug="p2", name="P2").pk).is_raised
    ProjectTurn.objects.update(judged_at=None)
    assert "Not judged in full yet" in client.get("/").content.decode()


def test_what_was_given_up_shows_until_an_operator_has_looked(
    watched: Project, client: Client
) -> None:
    row = give_up(watched)
    user = make_member(watched, role=Membership.Role.VIEWER)
    client.force_login(user)
    page = client.get("/runs/").content.decode()
    assert "1 notification failed" in page
    assert "take this message down" not in page
    assert client.post("/alerts/channels/seen/").status_code == 403
    Membership.objects.update(role=Membership.Role.OPERATOR)
    client.post("/alerts/channels/seen/")
    assert "notification failed" not in client.get("/runs/").content.decode()
    client.post(f"/alerts/notifications/{row.pk}/again/")
    row.refresh_from_db()
    assert (row.state, row.tries) == ("queued", 0)


def test_check_alerter_says_what_is_wrong_and_mails_it(
    watched: Project, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.FAILSOFT_ALERTER_MAIL = "ann@example.org,bob@example.org"
    call_command("check_alerter")
    assert mail.outbox == []
    give_up(watched)
    travel(20 * MINUTE)
    with pytest.raises(CommandError) as caught:
        call_command("check_alerter", "--json")
    assert caught.value.returncode == 1
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["ok"] is False
    assert "have not been evaluated for 20" in told["faults"][0]
    assert "1 notification: was given up unseen" in told["faults"]
    assert mail.outbox[0].to == ["ann@example.org", "bob@example.org"]


def test_what_waits_for_too_long_is_a_fault(watched: Project) -> None:
    make_channel(watched)
    happen(make_incident(watched))
    travel(2 * MINUTE)
    assert find_faults() == []
    travel(10 * MINUTE)
    assert "1 notification: waits to be sent for too long" in find_faults()


def test_every_page_tells_when_no_sender_comes(watched: Project, client: Client) -> None:
    client.force_login(make_member(watched))
    make_channel(watched)
    happen(make_incident(watched))
    assert "to be sent" not in client.get("/runs/").content.decode()
    travel(11 * MINUTE)
    page = client.get("/runs/").content.decode()
    assert "1 notification overdue" in page


def test_every_page_tells_of_a_channel_that_fails_while_messages_wait_for_it(
    watched: Project, client: Client, hook: tuple[Hook, str]
) -> None:
    hook[0].status = 404
    client.force_login(make_member(watched))
    make_channel(watched, "webhook", hook[1])
    happen(make_incident(watched))
    deliver_all()
    travel(2 * MINUTE)
    deliver_all()
    assert "cannot be sent" not in client.get("/runs/").content.decode()
    travel(9 * MINUTE)
    deliver_all()
    page = client.get("/runs/").content.decode()
    assert "1 notification cannot be sent" in page
    assert "overdue" not in page
    hook[0].status = 200
    travel(60 * MINUTE)
    deliver_all()
    assert "cannot be sent" not in client.get("/runs/").content.decode()


def test_the_address_outside_is_asked(settings: Settings) -> None:
    asked: list[str] = []

    class Outside(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if self.path == "/up" else 500)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Outside)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        found = []
        for url in (f"{base}/up", f"{base}/down", "http://127.0.0.1:1/", ""):
            settings.FAILSOFT_PING_URL = url
            found.append(ping_outside())
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert found == [True, False, False, False]
    assert asked == ["/up", "/down"]


def test_report_mails_that_were_given_up_show_for_a_day(watched: Project, client: Client) -> None:
    client.force_login(make_member(watched))
    assert "report mail" not in client.get("/runs/").content.decode()
    give_up_report(watched)
    assert "1 report mail of the last day failed" in client.get("/runs/").content.decode()
    travel(25 * 60 * MINUTE)
    assert alarm_of(watched.pk).lost_reports == 0


def give_up_report(project: Project) -> None:
    now = clock.now()
    subscription = Subscription.objects.create(
        project=project,
        address="out@example.org",
        cadence="daily",
        at=time(8),
        next_at=now,
        token="t",
    )
    ReportDelivery.objects.create(
        project=project,
        subscription=subscription,
        period_start=now - timedelta(days=1),
        period_end=now,
        state="failed",
        next_attempt_at=now,
        created_at=now,
    )

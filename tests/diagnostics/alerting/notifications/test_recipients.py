"""A mail to several addresses: each has its own answer, and none waits for another."""

from datetime import timedelta

import pytest
from aiosmtpd.smtp import Envelope
from django.core.mail.utils import DNS_NAME
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from pytest_django import Settings

from diagnostics.accounts.models import Project
from diagnostics.alerting.delivery import PAUSES, deliver_all
from diagnostics.alerting.notification_models import Channel, Notification
from tests.console import Role, make_member
from tests.diagnostics.alerting.notifications.building import (
    Mailbox,
    at_rest,
    happen,
    make_channel,
    make_incident,
    travel,
)

pytestmark = pytest.mark.django_db
THREE = "ann@example.org, bob@example.org, eve@example.org"
ANN, BOB, EVE = THREE.split(", ")
UNKNOWN, GREYLISTED = "550 no such user here", "451 try again later"


def taken_by(box: Mailbox) -> list[list[str]]:
    return [envelope.rcpt_tos for envelope in box.taken]


def has(envelope: Envelope, row: Notification) -> bool:
    return f"Message-ID: <{row.key}@".encode() in (envelope.original_content or b"")


def test_an_address_refused_for_good_is_told_and_the_others_have_the_mail_once(
    project: Project, mailbox: Mailbox
) -> None:
    channel = make_channel(project, target=THREE)
    mailbox.refuse = {BOB: UNKNOWN}
    (row,) = happen(make_incident(project))
    deliver_all()
    at_rest(row)
    assert (row.state, row.tries) == ("failed", 1)
    assert row.last_error == f"accepted for {ANN}, {EVE}; refused for {BOB}: {UNKNOWN}"
    travel(timedelta(days=1))
    assert deliver_all() == 0
    assert taken_by(mailbox) == [[ANN, EVE]]
    channel.refresh_from_db()
    assert (channel.badge, channel.failing_since) == (("warn", "refused in part"), None)
    assert BOB in channel.last_error


def test_an_address_to_be_tried_later_is_tried_alone_until_it_has_the_mail(
    project: Project, mailbox: Mailbox
) -> None:
    make_channel(project, target=THREE)
    mailbox.refuse = {BOB: GREYLISTED}
    (row,) = happen(make_incident(project))
    deliver_all()
    at_rest(row)
    assert row.state == "queued"
    assert row.last_error == f"accepted for {ANN}, {EVE}; waiting for {BOB}: {GREYLISTED}"
    mailbox.refuse = {}
    travel(timedelta(minutes=2))
    deliver_all()
    assert taken_by(mailbox) == [[ANN, EVE], [BOB]]
    assert [has(envelope, row) for envelope in mailbox.taken] == [True, True]
    assert (at_rest(row).state, row.last_error) == ("sent", "")
    assert row.answer == f"accepted for {ANN}, {BOB}, {EVE}"


def test_a_mail_that_only_went_to_the_log_is_not_called_accepted(
    project: Project, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    make_channel(project, target=THREE)
    (row,) = happen(make_incident(project))
    deliver_all()
    written = "Written to the server log: no mail server is set (FAILSOFT_EMAIL_URL)."
    assert at_rest(row).answer == written


def test_an_address_that_is_never_taken_is_given_up_like_a_channel(
    project: Project, mailbox: Mailbox
) -> None:
    make_channel(project, target=THREE)
    mailbox.refuse = {BOB: GREYLISTED}
    (row,) = happen(make_incident(project))
    for pause in (*PAUSES, timedelta(days=1)):
        deliver_all()
        travel(pause + timedelta(seconds=1))
    assert (at_rest(row).state, row.tries) == ("failed", len(PAUSES) + 1)
    assert taken_by(mailbox) == [[ANN, EVE]]


def test_recovery_reaches_the_others_at_once_and_a_late_address_after_its_fire(
    project: Project, mailbox: Mailbox
) -> None:
    make_channel(project, target=THREE)
    mailbox.refuse = {BOB: GREYLISTED}
    incident = make_incident(project)
    (fire,) = happen(incident)
    deliver_all()
    (over,) = happen(incident, "cleared")
    deliver_all()
    assert taken_by(mailbox) == [[ANN, EVE], [ANN, EVE]]
    mailbox.refuse = {}
    for _ in range(8):
        travel(timedelta(minutes=1))
        deliver_all()
    assert taken_by(mailbox)[2:] == [[BOB], [BOB]]
    assert [has(mailbox.taken[2], one) for one in (fire, over)] == [True, False]
    assert {at_rest(one).state for one in (fire, over)} == {"sent"}


def test_all_addresses_refused_for_good_are_given_up_at_once(
    project: Project, mailbox: Mailbox
) -> None:
    channel = make_channel(project, target=f"{ANN}, {BOB}")
    mailbox.refuse = {ANN: UNKNOWN, BOB: UNKNOWN}
    (row,) = happen(make_incident(project))
    deliver_all()
    assert (at_rest(row).state, row.tries) == ("failed", 1)
    channel.refresh_from_db()
    assert channel.failing_since is not None


def test_a_server_that_wants_a_full_name_takes_mail_from_a_container(
    project: Project, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailbox.wants_full_name = True
    monkeypatch.setattr(DNS_NAME, "_fqdn", "5c632f939fd4", raising=False)
    make_channel(project, target=ANN)
    (row,) = happen(make_incident(project))
    deliver_all()
    assert at_rest(row).state == "sent", row.last_error


def test_a_mail_refused_for_good_after_it_was_read_is_given_up_at_once(
    project: Project, mailbox: Mailbox
) -> None:
    channel = make_channel(project, target=f"{ANN}, {BOB}")
    mailbox.refuse_text = "554 5.7.1 rejected by policy"
    (row,) = happen(make_incident(project))
    deliver_all()
    assert (at_rest(row).state, row.tries) == ("failed", 1)
    channel.refresh_from_db()
    assert f"refused for {ANN}: {mailbox.refuse_text}" in channel.last_error


def test_a_mail_refused_for_now_after_it_was_read_is_tried_again(
    project: Project, mailbox: Mailbox
) -> None:
    make_channel(project, target=ANN)
    mailbox.refuse_text = "451 4.7.1 greylisted"
    (row,) = happen(make_incident(project))
    deliver_all()
    assert (at_rest(row).state, row.last_error) == (
        "queued",
        f"waiting for {ANN}: 451 4.7.1 greylisted",
    )
    mailbox.refuse_text = ""
    travel(timedelta(minutes=2))
    deliver_all()
    assert at_rest(row).state == "sent"


def test_a_server_that_leaves_between_two_addresses_is_tried_again_for_those_not_refused(
    project: Project, mailbox: Mailbox
) -> None:
    make_channel(project, target=THREE)
    mailbox.refuse = {ANN: UNKNOWN, EVE: "421 shutting down"}
    (row,) = happen(make_incident(project))
    deliver_all()
    at_rest(row)
    assert (row.state, row.channel.is_unreachable) == ("queued", True)
    assert f"waiting for {BOB}" in row.last_error
    mailbox.refuse = {}
    travel(timedelta(minutes=2))
    deliver_all()
    assert taken_by(mailbox) == [[BOB, EVE]]


def test_check_alerter_names_an_address_that_its_own_mail_was_refused_for(
    project: Project, mailbox: Mailbox, settings: Settings
) -> None:
    settings.FAILSOFT_ALERTER_MAIL = f"{ANN},{BOB}"
    mailbox.refuse = {BOB: UNKNOWN}
    with pytest.raises(CommandError, match=f"SomeRecipientsRefused.*{BOB}.*550"):
        call_command("check_alerter")
    assert taken_by(mailbox) == [[ANN]]


def test_check_alerter_names_faults_though_its_own_address_is_none(
    project: Project, mailbox: Mailbox, settings: Settings
) -> None:
    settings.FAILSOFT_ALERTER_MAIL = f"{ANN}; {BOB}"
    with pytest.raises(CommandError, match="the mail was refused: ValueError"):
        call_command("check_alerter")


def test_sending_again_asks_only_for_those_who_have_not_got_it(
    project: Project, mailbox: Mailbox, client: Client
) -> None:
    make_channel(project, target=THREE)
    mailbox.refuse = {BOB: UNKNOWN}
    (row,) = happen(make_incident(project))
    deliver_all()
    mailbox.refuse = {}
    client.force_login(make_member(project, "op", Role.OPERATOR))
    client.post(f"/alerts/notifications/{row.pk}/again/")
    deliver_all()
    assert taken_by(mailbox) == [[ANN, EVE], [BOB]]
    assert at_rest(row).state == "sent"


def test_the_channels_page_names_the_refused_address_until_it_is_taken_out(
    project: Project, mailbox: Mailbox, client: Client
) -> None:
    channel = make_channel(project, target=THREE)
    mailbox.refuse = {BOB: UNKNOWN}
    happen(make_incident(project))
    deliver_all()
    client.force_login(make_member(project, "boss", Role.ADMIN))
    page = f"/alerts/channels/{channel.pk}/"
    for address in (page, "/alerts/channels/"):
        assert f"refused for {BOB}: {UNKNOWN}" in client.get(address).content.decode()
    form = {"name": channel.name, "email": f"{ANN}, {EVE}", "min_severity": "warning"}
    client.post(page, {**form, "zone": "UTC", "digest_above": 10})
    channel.refresh_from_db()
    assert channel.shown == f"{ANN}, {EVE}"
    assert (channel.badge, channel.last_error) == (("good", "works"), "")


def test_messages_that_one_address_refuses_still_count_towards_the_digest(
    project: Project, mailbox: Mailbox
) -> None:
    make_channel(project, target=THREE, digest_above=2)
    mailbox.refuse = {BOB: UNKNOWN}
    for number in range(3):
        happen(make_incident(project, f"m-{number}"))
        deliver_all()
    states = Notification.objects.exclude(reason="digest").order_by("pk")
    assert [row.state for row in states] == ["failed", "failed", "digested"]
    assert Channel.objects.get().failing_since is None

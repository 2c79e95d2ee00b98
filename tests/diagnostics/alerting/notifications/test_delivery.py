"""Delivery over real SMTP and HTTP: signed, retried, in order, once by key."""

import base64
import email
import json
import math
import re
from datetime import timedelta
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest
from pytest_django import Settings
from standardwebhooks import Webhook

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting import delivery
from diagnostics.alerting.channels import keep_target, rotate_secret, secrets_of
from diagnostics.alerting.delivery import AT_ONCE, PAUSES, claim_next, deliver_all, probe_channels
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.store.models import OutboxMessage
from tests.diagnostics.alerting.notifications.building import (
    VERDICT,
    Hook,
    Mailbox,
    at_rest,
    happen,
    mail_server,
    make_channel,
    make_incident,
    travel,
)
from tests.sinks import dripping_sink

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def mails(box: Mailbox) -> list[EmailMessage]:
    return [
        email.message_from_bytes(one.content, policy=default)  # type: ignore[arg-type]
        for one in box.taken
    ]


def deliver(row: Notification) -> None:
    sending = delivery._prepare(row)
    assert sending is not None
    delivery._record(row, sending)


def test_a_fire_reaches_every_channel_with_rows_and_a_message_of_one_transaction(
    project: Project, mailbox: Mailbox, hook: tuple[Hook, str]
) -> None:
    make_channel(project, target="ann@example.org, bob@example.org")
    make_channel(project, "webhook", hook[1])
    rows = happen(make_incident(project))
    assert [row.state for row in rows] == ["queued", "queued"]
    assert OutboxMessage.objects.get().task == "diagnostics.tasks.deliver_due"
    assert deliver_all() == 2
    assert {at_rest(row).state for row in rows} == {"sent"}
    (mail,) = mails(mailbox)
    assert mailbox.taken[0].rcpt_tos == ["ann@example.org", "bob@example.org"]
    assert mail["Subject"] == "[P1] warning: anthropic/claude-haiku, 31 % of 412 runs"
    assert mail["Message-ID"] == f"<{rows[0].key}@failsoft.example.org>"
    text = mail.get_body(("plain",))
    page = mail.get_body(("html",))
    assert text is not None
    assert page is not None
    for part in (text.get_content(), page.get_content()):
        assert "/incidents/" in part
        assert "/acknowledge/" in part
        assert "Raise max_output_tokens" in part
        assert "26.7" in part


def test_s18_a_webhook_is_verified_by_the_reference_library_while_secrets_rotate(
    project: Project, hook: tuple[Hook, str]
) -> None:
    channel = make_channel(project, "webhook", hook[1])
    (first,) = secrets_of(channel, clock.now())
    (row,) = happen(make_incident(project))
    deliver_all()
    headers, body = hook[0].seen[0]
    told = Webhook(first).verify(body, headers)
    assert told["type"] == "incident.fired"
    assert headers["webhook-id"] == str(row.key)
    second = rotate_secret(channel, clock.now())
    happen(make_incident(project, "other"))
    deliver_all()
    headers, body = hook[0].seen[1]
    for secret in (first, second):
        Webhook(secret).verify(body, headers)
    travel(timedelta(hours=25))
    channel.refresh_from_db()
    assert secrets_of(channel, clock.now()) == [second]


def test_a_channel_that_another_key_sealed_is_set_up_again(
    project: Project, hook: tuple[Hook, str], settings: Settings
) -> None:
    channel = make_channel(project, "webhook", "https://before.example/hook")
    settings.FAILSOFT_WORKING_KEY = base64.b64encode(bytes(range(32))).decode()
    keep_target(channel, hook[1])
    channel.save()
    secret = rotate_secret(channel, clock.now())
    happen(make_incident(project))
    deliver_all()
    headers, body = hook[0].seen[0]
    assert Webhook(secret).verify(body, headers)["type"] == "incident.fired"


def test_what_a_webhook_tells(project: Project, hook: tuple[Hook, str]) -> None:
    make_channel(project, "webhook", hook[1])
    incident = make_incident(project)
    happen(incident)
    happen(incident, "cleared")
    deliver_all()
    fired, recovered = (one["data"] for one in hook[0].bodies())
    assert re.match(r"Degrading since (22 Nov )?14:32 UTC: ", fired["verdict"])
    assert fired["rate"] == {
        "share": 0.31,
        "low": 0.267,
        "high": 0.356,
        "baseline": 0.04,
        "n": 412,
        "counted": "runs",
    }
    assert fired["key"] == recovered["key"]
    assert fired["acknowledge_url"]
    assert recovered["acknowledge_url"] is None
    assert recovered["verdict"].startswith("Resolved after 18")
    assert recovered["duration_seconds"] >= 18 * 60


def test_writing_twice_tells_once(project: Project) -> None:
    make_channel(project)
    incident = make_incident(project)
    happen(incident)
    fired = incident.transitions.get()
    from diagnostics.alerting.notification_rows import notify  # noqa: PLC0415 - a second writer

    notify(incident, fired)
    assert Notification.objects.count() == 1


def test_a_try_that_fails_is_repeated_after_1_5_15_60_minutes_and_6_hours_then_given_up(
    project: Project, hook: tuple[Hook, str]
) -> None:
    hook[0].status = 500
    make_channel(project, "webhook", hook[1])
    (row,) = happen(make_incident(project))
    for number, pause in enumerate(PAUSES, start=1):
        assert deliver_all() == 1
        at_rest(row)
        assert (row.state, row.tries) == ("queued", number)
        assert "500" in row.last_error
        travel(pause - timedelta(seconds=5))
        assert deliver_all() == 0
        travel(timedelta(seconds=6))
    assert deliver_all() == 1
    assert at_rest(row).state == "failed"
    keys = {headers["webhook-id"] for headers, _ in hook[0].seen}
    assert (len(hook[0].seen), keys) == (6, {str(row.key)})


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        pytest.param(400, b"no_text", id="what Slack answers to a foreign body"),
        pytest.param(410, b"channel_is_archived", id="gone"),
        pytest.param(413, b"too large", id="too large"),
    ],
)
def test_what_a_receiver_refuses_for_good_is_given_up_in_its_words(
    project: Project, hook: tuple[Hook, str], status: int, answer: bytes
) -> None:
    hook[0].status, hook[0].answer = status, answer
    channel = make_channel(project, "webhook", hook[1])
    (row,) = happen(make_incident(project))
    deliver_all()
    assert (at_rest(row).state, row.tries) == ("failed", 1)
    channel.refresh_from_db()
    assert channel.last_error == f"the server answered {status} {answer.decode()}"


def test_a_receiver_with_a_long_answer_has_the_message_once(
    project: Project, hook: tuple[Hook, str]
) -> None:
    hook[0].answer = b"x" * 2**21
    make_channel(project, "webhook", hook[1])
    (row,) = happen(make_incident(project))
    deliver_all()
    assert (at_rest(row).state, row.tries) == ("sent", 1)


@pytest.mark.slow
def test_a_receiver_that_drips_after_its_status_has_the_message_once(
    project: Project, settings: Settings
) -> None:
    settings.FAILSOFT_HTTP_ALLOW_PRIVATE = True
    with dripping_sink(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n") as sink:
        make_channel(project, "webhook", f"http://127.0.0.1:{sink.port}/")
        (row,) = happen(make_incident(project))
        deliver_all()
    assert (at_rest(row).state, len(sink.heard)) == ("sent", 1)


@pytest.mark.parametrize("status", [401, 404, 408, 429, 503])
def test_what_a_receiver_may_take_later_is_tried_again(
    project: Project, hook: tuple[Hook, str], status: int
) -> None:
    hook[0].status = status
    make_channel(project, "webhook", hook[1])
    (row,) = happen(make_incident(project))
    deliver_all()
    assert at_rest(row).state == "queued"


def test_a_receiver_that_asks_to_wait_is_sent_nothing_until_then(
    project: Project, hook: tuple[Hook, str]
) -> None:
    hook[0].status, hook[0].headers = 429, {"Retry-After": "600"}
    make_channel(project, "webhook", hook[1])
    happen(make_incident(project))
    happen(make_incident(project, "other"))
    assert deliver_all() == 1
    hook[0].status = 200
    travel(9 * MINUTE)
    assert deliver_all() == 0
    travel(2 * MINUTE)
    assert deliver_all() == 2


@pytest.mark.slow
def test_a_mail_server_that_was_down_for_two_hours_gets_everything_within_ten_minutes_in_order(
    project: Project, smtp_port: int
) -> None:
    make_channel(project)
    incidents = []
    for minute in range(120):
        if minute % 20 == 0:
            incidents.append(make_incident(project, f"m-{minute}"))
            happen(incidents[-1])
        if minute == 50:
            happen(incidents[0], "cleared")
        deliver_all()
        probe_channels()
        travel(MINUTE)
    assert Notification.objects.filter(state="sent").count() == 0
    with mail_server(smtp_port) as box:
        for _ in range(10):
            probe_channels()
            deliver_all()
            travel(MINUTE)
        ids = [mail["Message-ID"][1:37] for mail in mails(box)]
    rows = list(Notification.objects.order_by("pk"))
    assert {row.state for row in rows} == {"sent"}
    assert ids == [str(row.key) for row in rows]
    assert len(rows) == 7


def test_a_sender_killed_between_sending_and_recording_sends_again_under_the_same_key(
    project: Project, hook: tuple[Hook, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_channel(project, "webhook", hook[1])
    (row,) = happen(make_incident(project))
    claim = claim_next()
    assert claim is not None
    with monkeypatch.context() as patch:
        patch.setattr("diagnostics.alerting.delivery._record_success", lambda *args: None)
        deliver(claim)
    assert deliver_all() == 0  # the lease of who was killed still runs
    travel(3 * MINUTE)
    assert deliver_all() == 1
    assert at_rest(row).state == "sent"
    assert [h["webhook-id"] for h, _ in hook[0].seen] == [str(row.key)] * 2


def test_whoever_lost_the_lease_records_nothing(project: Project, hook: tuple[Hook, str]) -> None:
    make_channel(project, "webhook", hook[1])
    (row,) = happen(make_incident(project))
    old = claim_next()
    travel(3 * MINUTE)
    new = claim_next()
    assert old is not None
    assert new is not None
    hook[0].status = 500
    deliver(new)
    hook[0].status = 200
    deliver(old)
    assert at_rest(row).state == "queued"


def test_recovery_waits_for_the_fire_on_its_channel(
    project: Project, hook: tuple[Hook, str]
) -> None:
    hook[0].status = 503
    make_channel(project, "webhook", hook[1])
    incident = make_incident(project)
    happen(incident)
    deliver_all()
    happen(incident, "cleared")
    assert deliver_all() == 0
    hook[0].status = 200
    travel(2 * MINUTE)
    deliver_all()
    assert [one["type"] for one in hook[0].bodies()[1:]] == ["incident.fired", "incident.recovered"]


@pytest.mark.parametrize(
    ("judged", "subject"),
    [
        # Not the rate of all calls of the series that fired.
        ({"name": "prompt v5", "rate": 0.69}, "prompt v5, 69 % of 412 runs"),
        # No verdict: the rate of the series.
        ({"rate": None}, "anthropic/claude-haiku, 31 % of 412 calls"),
    ],
)
def test_the_rate_in_a_subject_is_of_what_it_names(
    project: Project, mailbox: Mailbox, judged: dict[str, Any], subject: str
) -> None:
    make_channel(project, target="ops@example.org")
    happen(make_incident(project, cause="prompt", verdict={**VERDICT, **judged}))
    deliver_all()
    (mail,) = mails(mailbox)
    assert mail["Subject"] == f"[P1] warning: {subject}"


def test_s15_a_model_named_with_a_line_break_adds_no_header(
    project: Project, mailbox: Mailbox
) -> None:
    make_channel(project, target="ops@example.org")
    name = "x\r\nBcc: a@b"
    told = {"lead": f"Degrading: {name}, 31 % of 412 runs", "since": None, "rest": "."}
    verdict = {"told": {**told, "reason": ["Looks like it."]}}
    happen(make_incident(project, name, verdict=verdict, title=name))
    deliver_all()
    (mail,) = mails(mailbox)
    assert mailbox.taken[0].rcpt_tos == ["ops@example.org"]
    assert mail.get_all("Subject") == ["[P1] warning: x Bcc: a@b, 31 % of 412 calls"]
    assert mail["Bcc"] is None
    assert mail.get_all("To") == ["ops@example.org"]


def test_s17_a_private_address_is_not_asked_and_a_redirect_not_followed(
    project: Project, hook: tuple[Hook, str], settings: Settings
) -> None:
    make_channel(project, "webhook", hook[1])
    hook[0].status, hook[0].headers = 302, {"Location": hook[1]}
    (row,) = happen(make_incident(project))
    deliver_all()
    assert re.search(r"302 .*redirect to http://127\.0\.0\.1:\d+/…", at_rest(row).last_error)
    assert len(hook[0].seen) == 1
    settings.FAILSOFT_HTTP_ALLOW_PRIVATE = False
    travel(2 * MINUTE)
    deliver_all()
    assert "not a public address" in at_rest(row).last_error
    assert len(hook[0].seen) == 1


def test_x17_secrets_in_what_is_told_are_masked(project: Project, hook: tuple[Hook, str]) -> None:
    token = "sk-" + "Ab3" * 16
    make_channel(project, "webhook", hook[1])
    verdict = {"sentence": f"Degrading: the key {token} is refused."}
    (row,) = happen(make_incident(project, verdict=verdict))
    deliver_all()
    assert token not in json.dumps(at_rest(row).facts)
    assert token.encode() not in hook[0].seen[0][1]


def test_the_address_and_secret_of_a_webhook_stand_sealed_in_the_database(project: Project) -> None:
    target = "https://hooks.example.org/T123/very-secret-path"
    channel = make_channel(project, "webhook", target)
    assert channel.shown == "https://hooks.example.org/…"
    assert b"very-secret-path" not in bytes(channel.sealed or b"")


def test_chat_goes_through_apprise(project: Project, hook: tuple[Hook, str]) -> None:
    address = hook[1].replace("http://", "json://")
    make_channel(project, "chat", address)
    incident = make_incident(project)
    (row,) = happen(incident)
    deliver_all()
    assert at_rest(row).state == "sent", row.last_error
    told = hook[0].bodies()[0]
    assert told["title"].startswith("[P1] warning: anthropic/claude-haiku, 31")
    assert re.match(r"Degrading since (22 Nov )?14:32 UTC: ", told["message"])
    assert "Acknowledge: " in told["message"]
    happen(incident, "cleared")
    deliver_all()
    assert hook[0].bodies()[1]["type"] == "success"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        pytest.param("json://127.0.0.1:9/x", "not public", id="loopback"),
        pytest.param("syslog://", "not supported", id="syslog"),
        pytest.param("nonsense://x", "not supported", id="unknown"),
    ],
)
def test_s17_apprise_speaks_to_no_private_address(project: Project, address: str, why: str) -> None:
    make_channel(project, "chat", address)
    (row,) = happen(make_incident(project))
    deliver_all()
    assert why in at_rest(row).last_error


@pytest.mark.slow
def test_slow_receivers_of_one_project_do_not_hold_up_the_mail_of_another(
    project: Project, mailbox: Mailbox, settings: Settings
) -> None:
    settings.FAILSOFT_HTTP_ALLOW_PRIVATE = True
    other = Project.objects.create(slug="p2", name="P2")
    with dripping_sink() as sink:
        for number in range(3 * AT_ONCE["webhook"]):
            address = f"http://127.0.0.1:{sink.port}/{number}"
            make_channel(project, "webhook", address)
        make_channel(project, "chat", f"json://127.0.0.1:{sink.port}/")
        slow = happen(make_incident(project))
        make_channel(other, target="ops@example.org")
        (row,) = happen(make_incident(other))
        deliver_all(seconds=1)
        assert at_rest(row).state == "sent"
        assert mailbox.taken_at[0] < min(sink.left, default=math.inf)
    assert {"no answer within 5 s"} <= {at_rest(late).last_error for late in slow}
    assert len(sink.heard) <= AT_ONCE["webhook"] + AT_ONCE["chat"]


def test_a_slow_project_lets_the_webhooks_of_others_go_first(project: Project) -> None:
    other = Project.objects.create(slug="p2", name="P2")
    for number in range(2):
        make_channel(project, "webhook", f"https://a.example/{number}")
    first, second = happen(make_incident(project))
    make_channel(other, "webhook", "https://b.example/")
    (theirs,) = happen(make_incident(other))
    claim = claim_next([first])
    assert claim is not None
    assert claim.pk == theirs.pk
    under_way = [first, theirs]
    claim = claim_next(under_way)
    assert claim is not None
    assert claim.pk == second.pk


def test_a_project_leaves_one_place_of_each_kind_to_others(project: Project) -> None:
    other = Project.objects.create(slug="p2", name="P2")
    for number in range(AT_ONCE["webhook"]):
        make_channel(project, "webhook", f"https://a.example/{number}")
    *slow, left = happen(make_incident(project))
    assert claim_next(slow) is None
    make_channel(other, "webhook", "https://b.example/")
    (theirs,) = happen(make_incident(other))
    claim = claim_next(slow)
    assert claim is not None
    assert claim.pk == theirs.pk
    claim = claim_next(slow[1:])
    assert claim is not None
    assert claim.pk in {left.pk, slow[0].pk}


def test_a_message_that_is_not_written_in_time_is_tried_later_and_delays_no_other(
    project: Project, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_for_ever(row: Notification) -> None:
        while True:
            sum(range(1_000))

    monkeypatch.setattr(delivery, "PREPARE_SECONDS", 0.1)
    monkeypatch.setattr(delivery, "PREPARERS", {**delivery.PREPARERS, "webhook": run_for_ever})
    make_channel(project, "webhook", "https://a.example/")
    make_channel(project, target="ops@example.org")
    late, row = happen(make_incident(project))
    deliver_all()
    assert at_rest(row).state == "sent"
    late = at_rest(late)
    assert (late.state, late.tries) == ("queued", 1)
    assert "not done within 0.1 s" in late.last_error


def test_a_channel_deleted_while_its_notification_is_claimed_holds_up_no_other(
    project: Project, hook: tuple[Hook, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, kept = (make_channel(project, "webhook", hook[1]) for _ in range(2))
    happen(make_incident(project))

    def claim_and_delete(*given: Any, **options: Any) -> Notification | None:
        claim = claim_next(*given, **options)
        Channel.objects.filter(pk=gone.pk).delete()
        return claim

    monkeypatch.setattr(delivery, "claim_next", claim_and_delete)
    deliver_all()
    assert kept.notifications.filter(state="sent").exists()


def test_a_channel_has_one_notification_under_way_at_a_time(project: Project) -> None:
    make_channel(project, "webhook", "https://a.example/")
    (first,) = happen(make_incident(project))
    happen(make_incident(project, "other"))
    assert claim_next([first]) is None


def test_while_slow_receivers_are_waited_for_at_the_end_mail_still_goes_out(
    project: Project,
) -> None:
    for number in range(2):
        make_channel(project, "webhook", f"https://a.example/{number}")
    make_channel(project, target="ops@example.org")
    slow, _, mail = happen(make_incident(project))
    assert claim_next([], is_ending=True) is None
    claim = claim_next([slow], is_ending=True)
    assert claim is not None
    assert claim.pk == mail.pk
    assert claim_next([slow, mail], is_ending=True) is None
    assert claim_next([mail], is_ending=True) is None

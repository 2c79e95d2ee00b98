"""Mails of an incident: one thread under one subject, and lists that say what they leave out."""

import email
import re
from datetime import timedelta
from email.message import EmailMessage
from email.policy import default
from typing import Any
from uuid import uuid4

import pytest

from diagnostics.accounts.models import Project
from diagnostics.alerting.delivery import deliver_all
from diagnostics.alerting.incident_models import Incident, IncidentSlice
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.rule_models import AlertState
from diagnostics.alerting.senders.webhook import payload_of
from tests.diagnostics.alerting.notifications.building import (
    Hook,
    Mailbox,
    happen,
    make_channel,
    make_incident,
    make_rule,
    travel,
)

pytestmark = pytest.mark.django_db


def mails(box: Mailbox) -> list[EmailMessage]:
    return [
        email.message_from_bytes(one.content, policy=default)  # type: ignore[arg-type]
        for one in box.taken
    ]


def parts(mail: EmailMessage) -> list[str]:
    found = [mail.get_body((kind,)) for kind in ("plain", "html")]
    return [str(part.get_content()) for part in found if part is not None]


def add_slices(incident: Incident, number: int) -> None:
    first = incident.slices.get()
    for at in range(number):
        values = {"provider": "anthropic", "model": f"m-{at}"}
        state = AlertState.objects.create(
            rule=first.rule, slice=values, key=uuid4(), state="firing", since=first.fired_at
        )
        first.pk, first.state, first.slice = None, state, values
        first.save(force_insert=True)


def test_a_recovery_answers_the_mail_that_fired_under_its_subject(
    project: Project, mailbox: Mailbox
) -> None:
    make_channel(project)
    incident = make_incident(project)
    happen(incident)
    deliver_all()
    happen(incident, "worsened")
    happen(incident, "cleared")
    deliver_all()
    first, *others = mails(mailbox)
    assert first["In-Reply-To"] is None
    assert first["References"] is None
    for mail in others:
        assert mail["In-Reply-To"] == mail["References"] == first["Message-ID"]
        assert mail["Subject"] == f"Re: {first['Subject']}"
    assert len({mail["Message-ID"] for mail in mails(mailbox)}) == 3
    for part in parts(others[-1]):
        assert "Resolved after 18" in part


def test_a_subject_too_long_for_one_line_is_cut_alike_in_all_mails_of_a_thread(
    project: Project, mailbox: Mailbox
) -> None:
    make_channel(project)
    lead = "Degrading" + " a-model," * 40
    told: dict[str, Any] = {"lead": lead, "since": None, "rest": ".", "reason": []}
    incident = make_incident(project, verdict={"told": told})
    happen(incident)
    happen(incident, "cleared")
    deliver_all()
    first, second = (" ".join(mail["Subject"].split()) for mail in mails(mailbox))
    assert second == f"Re: {first}"
    assert len(second) <= 200


def test_what_nobody_got_begins_no_thread(project: Project, mailbox: Mailbox) -> None:
    make_channel(project)
    incident = make_incident(project)
    happen(incident)
    mailbox.refuse = {"ops@example.org": "550 no such user"}
    deliver_all()
    mailbox.refuse = {}
    happen(incident, "cleared")
    travel(timedelta(minutes=2))
    deliver_all()
    (mail,) = mails(mailbox)
    assert mail["In-Reply-To"] is None
    assert mail["Subject"].startswith("[P1] Resolved after 18")


def test_a_mail_and_a_webhook_say_how_many_series_they_do_not_list(
    project: Project, mailbox: Mailbox, hook: tuple[Hook, str]
) -> None:
    make_channel(project)
    make_channel(project, "webhook", hook[1])
    incident = make_incident(project)
    add_slices(incident, 39)
    rows = happen(incident)
    deliver_all()
    (mail,) = mails(mailbox)
    for part in parts(mail):
        assert "anthropic/m-8" in part
        assert "anthropic/m-9" not in part
        assert "30 more" in part
    told = payload_of(rows[1])["data"]
    assert (len(told["slices"]), told["more_slices"]) == (10, 30)


def test_a_series_that_several_rules_found_counts_once(project: Project, mailbox: Mailbox) -> None:
    make_channel(project)
    incident = make_incident(project)
    first = incident.slices.get()
    for _ in range(12):
        first.pk, first.rule = None, make_rule(project)
        first.state = AlertState.objects.create(
            rule=first.rule, slice=first.slice, key=uuid4(), state="firing", since=first.fired_at
        )
        first.save(force_insert=True)
    happen(incident)
    deliver_all()
    text = parts(mails(mailbox)[0])[0]
    assert text.count("Affected:") == 1
    assert "more" not in text.partition("Affected:")[2].partition("Rule:")[0]
    assert len(re.findall(r"^(?:Rule:|     )     rule ", text, re.MULTILINE)) == 13


@pytest.mark.slow
def test_a_digest_counts_the_alerts_that_it_does_not_list(
    project: Project, mailbox: Mailbox
) -> None:
    make_channel(project, digest_above=0)
    for number in range(53):
        happen(make_incident(project, f"m-{number}"))
    travel(timedelta(minutes=6))
    deliver_all()
    (mail,) = mails(mailbox)
    assert mail["Subject"].startswith("[P1] warning: 53 alerts: ")
    for part in parts(mail):
        assert "3 more" in part
    assert Notification.objects.get(reason="digest").state == "sent"


def test_the_rate_is_that_of_the_worst_series_listed_or_not(project: Project) -> None:
    make_channel(project)
    incident = make_incident(project, verdict={})
    add_slices(incident, 20)
    IncidentSlice.objects.filter(slice__model="m-19").update(k=400)
    (row,) = happen(incident)
    assert row.facts["rate"]["share"] == 400 / 412

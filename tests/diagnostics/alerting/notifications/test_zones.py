"""One zone, named: the channel's in messages and behind their links, the reader's on pages."""

import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core import mail as sent
from django.core.mail import EmailMultiAlternatives
from django.test import Client
from pytest_django import Settings

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_actions import silence_incident
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.senders.chat import body_of
from diagnostics.alerting.senders.mail import prepare_mail
from diagnostics.alerting.senders.messages import acknowledge_url, read_facts
from diagnostics.alerting.senders.webhook import payload_of
from diagnostics.reports.subscriptions import LinkAction, action_url
from tests.console import make_member
from tests.diagnostics.alerting.notifications.building import (
    happen,
    make_channel,
    make_incident,
    make_rule,
)
from tests.diagnostics.reports.conftest import make_subscription

pytestmark = pytest.mark.django_db
BERLIN = "Europe/Berlin"


def zones_of(text: str) -> set[str]:
    """Return what follows each time of day in a text."""
    found = re.findall(r"\b\d\d:\d\d(?::\d\d)?\b,? ?([^\s,.:)]*)", text)
    return set(found)


def plain(html: str) -> str:
    """Return what a reader sees where no script runs."""
    body = re.sub(r"<(head|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]*>", " ", body))


@pytest.fixture
def incident(project: Project, settings: Settings) -> Incident:
    settings.FAILSOFT_BASE_URL = ""
    return make_incident(project)


def tell(incident: Incident, kind: str = "email", target: str = "", **fields: Any) -> Notification:
    make_channel(incident.project, kind, target, zone=BERLIN, **fields)
    (row,) = happen(incident)
    return row


def test_a_mail_has_its_channels_zone_in_text_and_page(incident: Incident) -> None:
    prepare_mail(tell(incident))()
    message = sent.outbox[-1]
    assert isinstance(message, EmailMultiAlternatives)
    for part in (str(message.body), plain(str(message.alternatives[0][0]))):
        assert re.search(r"Degrading since (22 Nov )?15:32 Europe/Berlin: ", part)
        assert zones_of(part) == {BERLIN}


def test_a_mail_has_the_interval_of_the_onset_in_its_channels_zone(incident: Incident) -> None:
    ends = {"since_low": "2026-11-22T14:25:00Z", "since_high": "2026-11-22T14:40:00Z"}
    incident.verdict = {**incident.verdict, "since": "2026-11-22T14:32:00Z", **ends}
    incident.save()
    prepare_mail(tell(incident))()
    message = sent.outbox[-1]
    assert isinstance(message, EmailMultiAlternatives)
    for part in (str(message.body), plain(str(message.alternatives[0][0]))):
        told = " ".join(part.split())
        assert re.search(
            r"\(95 % between 22 Nov 2026 15:25 Europe/Berlin and .*15:40 Europe/Berlin\)", told
        )


def test_what_was_said_under_a_digest_is_in_the_zone_too(incident: Incident) -> None:
    make_channel(incident.project, zone=BERLIN, digest_above=0)
    (row,) = happen(incident)
    assert row.digest is not None
    facts = read_facts(row.digest)
    assert [zones_of(line.subject) for line in facts.lines] == [{BERLIN}]


def test_chat_and_webhook_say_it_in_the_zone_and_fields_stay_iso(incident: Incident) -> None:
    chat = tell(incident, "chat", "json://hooks.example.org/x")
    assert zones_of(body_of(read_facts(chat))) == {BERLIN}
    Channel.objects.all().delete()
    hook = make_channel(incident.project, "webhook", "https://hooks.example.org/x", zone=BERLIN)
    (row,) = happen(incident, "worsened")
    assert row.channel == hook
    data = payload_of(row)["data"]
    assert zones_of(data["verdict"]) == zones_of(data["sentence"]) == {BERLIN}
    assert data["onset"].endswith("Z")


@pytest.mark.parametrize("state", ["ask", "done", "known", "used", "over"])
def test_the_page_behind_the_link_has_the_channels_zone(incident: Incident, state: str) -> None:
    row = tell(incident)
    link, client = acknowledge_url(row), Client()
    if state in ("done", "used"):
        page = client.post(link)
        page = page if state == "done" else client.get(link)
    else:
        changes = {"known": {"state": "acknowledged", "acknowledged_at": clock.now()}}
        changes["over"] = {"state": "resolved", "cleared_at": clock.now()}
        Incident.objects.filter(pk=incident.pk).update(**changes.get(state, {"title": "x/y"}))
        page = client.get(link)
    assert zones_of(plain(page.content.decode())) == {BERLIN}
    if state != "over":
        told = {"ask": "", "known": "by link", "used": "by link", "done": "Acknowledged by link"}
        assert told[state] in plain(page.content.decode())


def test_a_link_of_a_report_names_the_zone(project: Project, settings: Settings) -> None:
    settings.FAILSOFT_BASE_URL = ""
    subscription = make_subscription(project, make_member(project), zone=BERLIN)
    for order in LinkAction:
        page = Client().get(action_url(subscription, order, clock.now())).content.decode()
        assert zones_of(plain(page)) == {BERLIN}


def test_no_template_names_a_zone_that_the_page_may_not_have() -> None:
    files = list((Path(__file__).parents[4] / "templates").rglob("*.html"))
    assert len(files) > 100
    labelled = [file.name for file in files if "data-zone>UTC<" in file.read_text("utf-8")]
    assert labelled == []


@pytest.mark.parametrize("zone", ["", BERLIN])
def test_without_script_each_time_of_a_page_names_the_readers_zone(
    incident: Incident, zone: str
) -> None:
    rule = make_rule(incident.project)
    incident.slices.update(rule=rule)
    person = make_member(incident.project)
    silence_incident(incident, person, clock.now() + timedelta(hours=1), "deploy")
    client = Client()
    client.force_login(person)
    client.post("/account/", {"zone": zone, "theme": ""})
    page = client.get(f"/incidents/{incident.pk}/").content.decode()
    # The zone of a table is in its heading.
    page, tables = re.subn(r"<tbody data-width.*?</tbody>", "", page, flags=re.DOTALL)
    assert page.count(f"From (<span data-zone>{zone or 'UTC'}</span>)") == tables
    times = re.findall(r'<time datetime[^>]*data-form="(?!ago)[^>]*>(.*?)</time>', page)
    assert len(times) > 3
    assert {time.rpartition(" ")[2] for time in times} == {zone or "UTC"}
    # The end of the silence is a time like the others, not a text in UTC.
    assert re.search(r"until <time ", page)
    assert f"<span data-zone>{zone or 'UTC'}</span>" in page

"""The acknowledge link: without sign-in, asked first, once, a week, nobody else's."""

from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import Settings

from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.senders.messages import acknowledge_url
from tests.diagnostics.alerting.notifications.building import (
    happen,
    make_channel,
    make_incident,
    travel,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(project: Project, settings: Settings) -> Notification:
    settings.FAILSOFT_BASE_URL = ""
    make_channel(project, name="on call")
    (row,) = happen(make_incident(project))
    return row


def incident_of(row: Notification) -> Incident:
    assert row.incident_id is not None
    return Incident.objects.get(pk=row.incident_id)


def test_looking_changes_nothing_and_the_button_acknowledges_once(told: Notification) -> None:
    client, link = Client(enforce_csrf_checks=True), acknowledge_url(told)
    for _ in range(2):  # a scanner of mail, then a person
        page = client.get(link)
        assert "Acknowledge this incident?" in page.content.decode()
        assert incident_of(told).state == "open"
    done = client.post(link)
    assert "Acknowledged" in done.content.decode()
    incident = incident_of(told)
    assert (incident.state, incident.acknowledged_by) == ("acknowledged", None)
    assert AuditEntry.objects.get().actor == "link sent to the channel on call"
    assert client.post(link).status_code == 410
    assert done["Referrer-Policy"] == "no-referrer"
    assert "no-store" in done["Cache-Control"]


def test_a_second_link_says_that_the_incident_is_acknowledged(
    told: Notification, project: Project
) -> None:
    (later,) = happen(incident_of(told), "worsened")
    Client().post(acknowledge_url(told))
    page = Client().post(acknowledge_url(later)).content.decode()
    assert "Already acknowledged" in page


def test_a_link_of_a_week_ago_or_of_other_making_does_nothing(told: Notification) -> None:
    link = acknowledge_url(told)
    head, _, signature = link.rpartition(".")
    foreign = head.replace(f"/{told.pk}-", f"/{told.pk + 1}-") + "." + signature
    for wrong in (foreign, head + ".x/", "/acknowledge/1/", "/acknowledge/%00/"):
        assert Client().post(wrong).status_code == 404
    travel(timedelta(days=8))
    assert Client().post(link).status_code == 404
    assert incident_of(told).state == "open"


def test_there_is_no_link_where_there_is_nothing_to_acknowledge(told: Notification) -> None:
    (over,) = happen(incident_of(told), "cleared")
    assert acknowledge_url(over) == ""
    assert "<h1>Resolved</h1>" in Client().get(acknowledge_url(told)).content.decode()

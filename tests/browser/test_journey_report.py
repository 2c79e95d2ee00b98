"""Two journeys, click by click: a report for a colleague, and from a mail to acknowledged."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.core import mail as sent
from django.core.mail import EmailMultiAlternatives
from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from diagnostics.accounts.models import Membership, Project
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.senders.mail import prepare_mail
from diagnostics.reports.models import Subscription
from tests.browser.conftest import Open, Reader
from tests.diagnostics.alerting.notifications.building import happen, make_channel, make_incident
from tests.diagnostics.reports.conftest import make_subscription

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
MOST_FIELDS = 6


class Hand:
    """Clicks and fills, and counts both."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = self.fields = 0

    def click(self, role: str, name: str) -> None:
        self.clicks += 1
        self.page.get_by_role(role, name=name, exact=True).first.click()  # type: ignore[arg-type]

    def fill(self, label: str, text: str) -> None:
        self.fields += 1
        self.page.get_by_label(label).fill(text)


def test_a_weekly_report_for_a_colleague_takes_at_most_six_fields(
    project: Project, person: User, reader: Reader
) -> None:
    Membership.objects.filter(user=person).update(role=Membership.Role.ADMIN)
    hand = Hand(reader.open("/reports/"))
    hand.click("link", "Create weekly report")
    hand.fill("Filter", "model:haiku env:prod")
    hand.fill("Send to", "bob@example.org")
    hand.click("button", "Save")
    expect(hand.page.get_by_text("bob@example.org")).to_be_visible()
    assert (hand.clicks, hand.fields) == (2, 2)
    assert hand.fields <= MOST_FIELDS
    made = Subscription.objects.get()
    assert (made.recipient, made.title) == ("bob@example.org", "model:haiku env:prod")
    # What nobody typed: every Monday at eight, in the zone of the browser.
    assert made.when == "every Monday at 08:00, Europe/Oslo"
    assert reader.axe_violations() == []
    reader.check()


def test_from_the_mail_to_acknowledged_in_two_clicks_without_signing_in(
    project: Project, open_reader: Open, live_server: LiveServer, settings: Settings
) -> None:
    settings.FAILSOFT_BASE_URL = live_server.url
    make_channel(project, zone="Europe/Berlin", name="on call")
    incident = make_incident(project)
    (row,) = happen(incident)
    prepare_mail(row)()
    message = sent.outbox[-1]
    assert isinstance(message, EmailMultiAlternatives)
    reader = open_reader(390)
    hand = Hand(reader.page)
    hand.page.set_content(str(message.alternatives[0][0]))
    hand.click("link", "Acknowledge")
    expect(hand.page.get_by_text("Europe/Berlin").first).to_be_visible()
    assert reader.axe_violations() == []
    hand.click("button", "Acknowledge")
    expect(hand.page.get_by_role("heading", name="Acknowledged by link")).to_be_visible()
    assert hand.clicks == 2
    assert Incident.objects.get(pk=incident.pk).state == "acknowledged"
    reader.check()


def test_a_time_of_yesterday_names_its_day(project: Project, reader: Reader) -> None:
    incident = make_incident(project)
    reader.page.clock.set_fixed_time(datetime(2026, 11, 23, 8, tzinfo=UTC))
    page = reader.open(f"/incidents/{incident.pk}/")
    # Seventeen hours ago, but not today.
    expect(page.locator("h1 time").first).to_have_text("22 Nov, 15:32")
    reader.page.clock.set_fixed_time(datetime(2026, 11, 22, 22, tzinfo=UTC))
    page = reader.open(f"/incidents/{incident.pk}/")
    expect(page.locator("h1 time").first).to_have_text("15:32")


def test_without_script_a_page_names_the_zone_of_its_times(
    project: Project, person: User, open_reader: Open
) -> None:
    incident = make_incident(project)
    reader = open_reader(java_script_enabled=False)
    reader.sign_in()
    page = reader.open("/account/")
    page.get_by_label("Time zone").fill("Asia/Tokyo")
    page.get_by_role("button", name="Save").first.click()
    page = reader.open(f"/incidents/{incident.pk}/")
    expect(page.locator("h1 time").first).to_have_text(re.compile(r"^(22 Nov )?23:32 Asia/Tokyo$"))


def test_a_button_that_cannot_be_pressed_looks_so(
    project: Project, person: User, reader: Reader
) -> None:
    made = make_subscription(project, person)
    page = reader.open(f"/reports/subscriptions/{made.pk}/preview/")
    button = page.get_by_role("button", name="Send to me now")
    expect(button).to_be_disabled()
    colour = "one => getComputedStyle(one).backgroundColor"
    disabled = button.evaluate(colour)
    button.evaluate("one => { one.disabled = false; }")
    assert button.evaluate(colour) != disabled

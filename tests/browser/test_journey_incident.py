"""Paged at night: acknowledged in two clicks, then the cause, a silence, and the end."""

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.rule_models import Silence
from diagnostics.alerting.senders.messages import acknowledge_url
from tests.browser.conftest import Open, Reader
from tests.console import post_runs
from tests.diagnostics.alerting.notifications.building import happen, make_channel, make_incident

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
MOST_CLICKS = 2
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def click(page: Page, name: str, clicks: list[str]) -> None:
    """Press a button or a link, and count it."""
    found = page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name))
    found.first.click()
    clicks.append(name)


def test_paged_to_acknowledged_in_two_clicks_then_cause_silence_and_resolve(
    project: Project, reader: Reader, open_reader: Open
) -> None:
    make_channel(project, name="on call")
    incident = make_incident(project)
    (mail,) = happen(incident)
    # Opening the link of the mail is the first click; nobody has to sign in.
    phone = open_reader(390)
    clicks = ["Acknowledge in the mail"]
    page = phone.open(acknowledge_url(mail).removeprefix("http://testserver"))
    click(page, "Acknowledge", clicks)
    expect(page.get_by_role("heading", name="Acknowledged")).to_be_visible()
    assert len(clicks) <= MOST_CLICKS
    assert Incident.objects.get(pk=incident.pk).acknowledged_at
    # At the desk: Now says why, the incident says what to change.
    page = reader.open("/")
    card = page.locator("article.cause")
    expect(card).to_contain_text("anthropic/claude-haiku, 31 % of 412 runs")
    expect(card).to_contain_text("Looks like the model or provider, not us")
    card.get_by_role("link", name="Details").click()
    expect(page.get_by_role("heading", name="What to change")).to_be_visible()
    page.locator("#silence > summary").click()
    # At three in the morning nobody has to say why.
    page.locator("#silence").get_by_role("button", name="Silence").click()
    expect(page.get_by_text("Silenced for 1 hour;")).to_be_visible()
    assert Silence.objects.get().reason == ""
    page.locator("#resolve > summary").click()
    page.get_by_label("Cause").select_option("provider")
    page.locator("#resolve").get_by_role("button", name="Resolve").click()
    expect(page.locator("h1")).to_contain_text("Degraded from")
    expect(page.locator(".verdict")).to_contain_text("Resolved by ann after")
    assert reader.axe_violations() == []
    reader.check()


def test_the_actions_of_an_incident_stay_in_sight(incident: Project, reader: Reader) -> None:
    made = make_incident(incident)
    page = reader.open(f"/incidents/{made.pk}/")
    page.locator("#line-heading").scroll_into_view_if_needed()
    page.mouse.wheel(0, 4_000)
    expect(page.get_by_role("button", name="Acknowledge")).to_be_in_viewport()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_two_incidents_are_two_cards_on_a_phone_and_at_a_desk(
    incident: Project, open_reader: Open, scheme: str
) -> None:
    for model in ("claude-haiku-4", "gpt-5"):
        make_incident(incident, model)
    for width in (390, 1440):
        reader = open_reader(width, color_scheme=scheme)
        reader.sign_in()
        page = reader.open("/")
        expect(page.locator("article.cause")).to_have_count(2)
        expect(page.get_by_role("button", name="Acknowledge")).to_have_count(2)
        top = page.locator("article.cause h2").first.bounding_box()
        assert top
        assert top["y"] < 900
        assert page.evaluate(WIDER) <= 0
        assert reader.axe_violations() == []
        reader.check()


def test_models_fold_open_by_keyboard_and_without_a_script(
    incident: Project, open_reader: Open
) -> None:
    for can_run in (True, False):
        reader = open_reader(java_script_enabled=can_run)
        reader.sign_in()
        page = reader.open("/?open=")
        fold = page.locator("a.fold").first
        expect(fold).to_have_attribute("aria-expanded", "false")
        fold.focus()
        page.keyboard.press("Enter")
        expect(page.locator("tr.part").first).to_be_visible()
        expect(page.locator("a.fold").first).to_have_attribute("aria-expanded", "true")


def test_long_names_leave_the_trend_inside_the_card(project: Project, reader: Reader) -> None:
    at = clock.now() - timedelta(minutes=5)
    post_runs(project, 30, 0, at, provider="provider-" + "p" * 60, model="model-" + "m" * 120)
    page = reader.open("/")
    card = page.locator("section[aria-labelledby=models-heading]").bounding_box()
    trend = page.locator("table.series tbody .spark").first.bounding_box()
    assert card
    assert trend
    assert trend["x"] + trend["width"] <= card["x"] + card["width"]
    assert page.evaluate(WIDER) <= 0

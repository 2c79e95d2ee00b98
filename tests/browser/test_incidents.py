"""An incident at night: what is typed stays, a silence is seen, panels cover nothing."""

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect

from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_models import Incident
from tests.browser.conftest import PASSWORD, Open, Reader
from tests.diagnostics.alerting.notifications.building import make_incident

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def _refresh(page: Page) -> None:
    """Let the page ask for itself, as it does every fifteen seconds."""
    with page.expect_response(lambda answer: answer.request.resource_type == "xhr"):
        page.evaluate("htmx.trigger('[data-poll]', 'seen')")


def test_a_note_that_is_being_typed_outlives_a_refresh(project: Project, reader: Reader) -> None:
    incident = make_incident(project)
    page = reader.open(f"/incidents/{incident.pk}/")
    note = page.get_by_label("Note")
    note.fill("The provider says it is")
    Incident.objects.filter(pk=incident.pk).update(tracker_url="https://a.example/1")
    _refresh(page)
    page.locator("h1").click()
    _refresh(page)
    expect(note).to_have_value("The provider says it is")
    note.fill("")
    page.locator("h1").click()
    _refresh(page)
    expect(page.get_by_role("link", name="https://a.example/1")).to_be_visible()
    reader.check()


def test_a_silence_is_asked_for_over_the_page_and_seen_afterwards(
    project: Project, reader: Reader
) -> None:
    incident = make_incident(project)
    page = reader.open(f"/incidents/{incident.pk}/")
    height = page.locator(".verdict").evaluate("one => one.offsetHeight")
    page.locator("#silence > summary").press("Enter")
    assert page.locator(".verdict").evaluate("one => one.offsetHeight") == height
    page.get_by_label("Reason").fill("looking at it")
    page.locator("#silence").get_by_role("button", name="Silence").press("Enter")
    expect(page.get_by_text("Silenced for 1 hour;")).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text("silenced")
    assert reader.axe_violations() == []
    reader.check()


def test_a_menu_that_is_left_by_keyboard_closes(project: Project, reader: Reader) -> None:
    incident = make_incident(project)
    page = reader.open(f"/incidents/{incident.pk}/")
    page.locator("#silence > summary").press("Enter")
    for _ in range(4):
        page.keyboard.press("Tab")
    expect(page.locator("#resolve > summary")).to_be_focused()
    expect(page.locator("#silence")).not_to_have_attribute("open", "")


@pytest.mark.parametrize("width", [360, 768, 1024, 1440, 2560])
def test_no_open_menu_makes_a_page_scroll_sideways(
    project: Project, open_reader: Open, width: int
) -> None:
    incident = make_incident(project)
    reader = open_reader(width)
    reader.sign_in()
    for path in ("/", f"/incidents/{incident.pk}/"):
        page = reader.open(path)
        for menu in page.locator("details.menu").all():
            menu.evaluate("one => { one.open = true; }")
            assert page.evaluate(WIDER) <= 0, (path, menu.inner_text())
            menu.evaluate("one => { one.open = false; }")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_evidence_is_copied_by_one_button(
    incident: Project, open_reader: Open, scheme: str
) -> None:
    reader = open_reader(color_scheme=scheme, permissions=["clipboard-read", "clipboard-write"])
    reader.sign_in()
    page = reader.open("/")
    button = page.get_by_role("link", name="Copy as a task")
    button.click()
    expect(page.get_by_role("link", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "\n# `Degrading since" in copied
    reader.open("/verdict/task/")
    expect(page.locator("pre")).to_contain_text("## More")
    assert page.evaluate(WIDER) == 0
    assert reader.axe_violations() == []
    reader.check()


@pytest.mark.parametrize("is_scripted", [True, False])
def test_a_note_sent_after_its_session_ended_is_kept_through_sign_in(
    project: Project, open_reader: Open, is_scripted: bool
) -> None:
    incident = make_incident(project)
    reader = open_reader(java_script_enabled=is_scripted)
    reader.sign_in()
    page = reader.open(f"/incidents/{incident.pk}/")
    page.get_by_label("Note").fill("Rolled back to planner-v5")
    Session.objects.all().delete()
    if is_scripted:
        # The page that refreshes itself must not throw the note away.
        page.evaluate("htmx.trigger(document.querySelector('[data-poll]'), 'seen')")
        expect(page.locator("#fault")).to_contain_text("signed out")
    page.get_by_role("button", name="Add note").click()
    page.fill("[name=login]", "ann")
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_url(f"**/incidents/{incident.pk}/")
    expect(page.locator("#draft")).to_contain_text("Not saved yet")
    if is_scripted:
        assert reader.axe_violations() == []
    page.get_by_role("button", name="Send draft").click()
    expect(page.locator("#draft")).to_have_count(0)
    expect(page.get_by_text("Rolled back to planner-v5")).to_have_count(1)
    reader.check()

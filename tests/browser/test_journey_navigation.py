"""Journeys of moving about: the first event, any run, any model and a deploy."""

import re

import httpx
import pytest
from django.contrib.sessions.backends.db import SessionStore
from playwright.sync_api import Page, expect

from diagnostics import clock
from diagnostics.accounts.models import AuditEntry, Membership, Project
from diagnostics.alerting.incident_models import Incident
from diagnostics.ingest.models import Deploy
from diagnostics.store.aggregation import fold
from tests.browser.conftest import PASSWORD, Open, Reader
from tests.console import post_runs
from tests.diagnostics.builders import succeeded

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def open_incident(project: Project) -> Incident:
    now = clock.now()
    return Incident.objects.create(
        project=project, title="openai/gpt-5", onset=now, fired_at=now, severity="critical"
    )


def open_search(page: Page) -> None:
    page.keyboard.press("Control+k")
    expect(page.locator("#palette input")).to_be_focused()


def test_project_key_and_first_event(reader: Reader, project: Project) -> None:
    Membership.objects.update(role=Membership.Role.ADMIN)
    page = reader.open("/settings/projects/")
    page.locator("#id_create-name").fill("Support bot")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("Support bot created.")).to_be_visible()
    page.locator(".bar nav summary").click()
    page.get_by_role("link", name="Data", exact=True).click()
    page.get_by_label("Data").get_by_role("link", name="Instrument your agent").click()
    page.get_by_role("link", name="2. Create a key").click()
    # The password was given a moment ago: nothing asks for it again.
    page.get_by_role("button", name="Create key").click()
    key = page.locator("#issued").inner_text()
    assert page.url == f"{reader.base_url}/setup/"
    covered = "box => { const pre = box.querySelector('pre'); const range = new Range();"
    covered += " range.selectNodeContents(pre); const text = range.getBoundingClientRect();"
    covered += " return text.right > box.querySelector('button').getBoundingClientRect().left; }"
    assert page.locator(".key-box").evaluate(covered) is False
    event = {**succeeded(), "occurred_at": clock.now().isoformat()}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    posted = httpx.post(f"{reader.base_url}/api/v1/events", json=[event], headers=headers)
    assert posted.status_code == 200
    fold()
    expect(page.get_by_role("heading", name="Setup complete")).to_be_visible()
    reader.check()


def test_a_key_has_its_own_address_after_a_password_check(reader: Reader) -> None:
    Membership.objects.update(role=Membership.Role.ADMIN)
    cookies = {c["name"]: c["value"] for c in reader.context.cookies()}
    forget_password_check(cookies)
    page = reader.open("/settings/keys/")
    page.get_by_label("Name").fill("agent")
    page.get_by_role("button", name="Create key").click()
    expect(page.locator("h1")).to_have_text("Confirm your password")
    page.locator("input[type=password]").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#issued")).to_contain_text("fs_")
    assert page.url == f"{reader.base_url}/settings/keys/"
    page.reload()
    expect(page.locator("#issued")).to_have_count(0)
    expect(page.get_by_role("heading", name="API keys")).to_be_visible()


def forget_password_check(cookies: dict[str, str]) -> None:
    """Make the session one whose password check is long ago."""
    session = SessionStore(cookies["sessionid"])
    for record in session["account_authentication_methods"]:
        record["at"] = 0
    session.modified = True
    session.save()


def test_any_run_by_prefix_in_two_actions(incident: Project, reader: Reader) -> None:
    post_runs(incident, 1, 0, clock.now(), correlation_id="weekly-2031-07")
    page = reader.open("/failures/")
    open_search(page)
    page.keyboard.type("weekly-")
    page.locator("#hits").get_by_role("link", name="weekly-2031-07").click()
    page.wait_for_url("**/runs/weekly-2031-07/")
    reader.check()


def test_keyboard_alone_leads_to_a_model(incident: Project, reader: Reader) -> None:
    page = reader.open("/")
    open_search(page)
    page.keyboard.type("haiku-4")
    expect(page.locator("#hits a").first).to_have_text("provider/claude-haiku-4")
    assert reader.axe_violations() == []
    page.keyboard.press("ArrowDown")
    expect(page.locator("#hits a").first).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/models/provider/claude-haiku-4/")
    open_search(page)
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    reader.check()


def test_enter_right_after_typing_an_id_leads_there(incident: Project, reader: Reader) -> None:
    row = open_incident(incident)
    page = reader.open("/")
    open_search(page)
    page.keyboard.type(f"#{row.pk}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/incidents/{row.pk}/")


@pytest.mark.parametrize("path", ["/", "/models/", "/compare/"])
def test_a_question_mark_shows_the_shortcuts_of_pages_without_a_list(
    incident: Project, reader: Reader, path: str
) -> None:
    page = reader.open(path)
    page.keyboard.press("?")
    expect(page.get_by_text("search or jump to anything")).to_be_visible()
    reader.check()


def test_search_without_javascript(incident: Project, open_reader: Open) -> None:
    row = open_incident(incident)
    reader = open_reader(java_script_enabled=False)
    reader.sign_in()
    page = reader.page
    page.get_by_role("searchbox", name="Search or jump to").first.fill("haiku")
    page.keyboard.press("Enter")
    expect(page.locator("#results")).to_contain_text("provider/claude-haiku-4")
    page.locator("main input[name=q]").fill(f"Incident {row.pk}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/incidents/{row.pk}/")


def test_slash_goes_to_the_filter_box_and_else_to_the_search(reader: Reader) -> None:
    page = reader.open("/")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page = reader.open("/account/")
    page.keyboard.press("/")
    expect(page.locator("#palette input")).to_be_focused()


@pytest.mark.parametrize(("letter", "path"), [("i", "/incidents/"), ("a", "/alerts/rules/")])
def test_g_and_a_letter_open_a_place(reader: Reader, letter: str, path: str) -> None:
    page = reader.open("/models/")
    page.keyboard.press("g")
    page.keyboard.press(letter)
    page.wait_for_url(f"**{path}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_has_one_menu_and_the_page_begins_early(open_reader: Open, scheme: str) -> None:
    reader = open_reader(width=390, color_scheme=scheme)
    reader.sign_in()
    page = reader.open("/models/")
    page.get_by_role("button", name="Dismiss").click()
    top = page.locator("main").bounding_box()
    assert top
    assert top["y"] <= 60
    menu = page.locator(".bar nav summary")
    menu.click()
    for name in ("Now", "Incidents", "Runs", "Compare", "Plan runs", "Settings"):
        expect(page.locator(".bar nav").get_by_role("link", name=name, exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert reader.axe_violations() == []
    reader.check()


def test_a_deploy_is_marked_and_listed(reader: Reader) -> None:
    page = reader.open("/deploys/")
    page.get_by_label("Version").fill("2.7.0")
    page.get_by_label("Time").fill("2026-01-05T10:30")
    page.get_by_role("button", name="Mark deploy").click()
    expect(page.get_by_text("Deploy marked: release 2.7.0.")).to_be_visible()
    expect(page.get_by_role("row", name="2.7.0")).to_contain_text("10:30")
    # Typed in the zone of the browser, which is Oslo's.
    assert Deploy.objects.get().at.isoformat() == "2026-01-05T09:30:00+00:00"
    assert AuditEntry.objects.filter(action="deploy.marked").exists()
    assert reader.axe_violations() == []
    reader.check()


def test_the_icon_follows_an_incident_that_a_poll_brings(incident: Project, reader: Reader) -> None:
    page = reader.open("/")
    expect(page.locator("#icon")).not_to_have_attribute("href", re.compile("incident"))
    open_incident(incident)
    page.evaluate("htmx.trigger('#live', 'seen')")
    expect(page.locator("#icon")).to_have_attribute("href", re.compile("logo-incident"))

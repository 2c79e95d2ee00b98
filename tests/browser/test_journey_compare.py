"""Comparing, as a person does it: two models, and the time around a deploy."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.failures.models import FailureGroup
from diagnostics.ingest.models import Deploy
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from tests.browser.conftest import Open, Reader
from tests.diagnostics.builders import make_event

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


class Clicks:
    """Clicks and choices of a person, counted."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def click(self, selector: str) -> None:
        self.page.locator(selector).first.click()
        self.count += 1

    def choose(self, name: str, label: str) -> None:
        self.page.locator(f"select[name={name}]").select_option(label=label)
        self.count += 1


def test_two_models_are_compared_in_four_clicks(incident: Project, reader: Reader) -> None:
    page = reader.open("/")
    person = Clicks(page)
    person.click(".bar summary:has-text('More')")
    person.click(".bar a[href='/compare/']")
    person.choose("a_model", "provider/claude-haiku-4")
    expect(page.locator(".chip")).to_have_count(2)
    person.choose("b_model", "provider/gpt-5")
    expect(page.locator("h1")).to_contain_text("claude-haiku-4 degrades more than gpt-5:")
    expect(page.locator("select[name=with]")).to_contain_text("Same time (default)")
    assert person.count <= 4
    page.locator("select[name=with]").select_option(label="Previous period")
    expect(page).to_have_url(re.compile("with=period"))
    reader.check()


def test_a_failure_is_muted_and_compared_around_a_deploy(incident: Project, reader: Reader) -> None:
    now = clock.now()
    named = {"provider": "provider", "model": "claude-haiku-4"}
    at = (now - timedelta(minutes=4)).isoformat()
    record(incident.pk, [make_event(occurred_at=at, **named) for _ in range(3)])
    fold()
    for hours, version in ((3, "2026.11.1"), (1, "2026.11.2")):
        when = now - timedelta(hours=hours)
        Deploy.objects.create(project=incident, at=when, kind="release", version=version)
    page = reader.open("/failures/")
    page.get_by_label("Select Not JSON").check()
    expect(page.locator("[data-picked]")).to_have_text("1 selected")
    page.get_by_role("button", name="Mute", exact=True).click()
    expect(page.get_by_text("1 failure muted")).to_be_visible()
    assert FailureGroup.objects.get(project=incident, error_type="not_json").state == "muted"
    expect(page.get_by_label("Select Not JSON")).to_have_count(0)
    page.locator("#share summary").click()
    page.get_by_role("link", name="Compare", exact=True).last.click()
    page.locator("select[name=with]").select_option(label="Before a deploy")
    expect(page.get_by_text("Deploy: release 2026.11.2")).to_be_visible()
    first = Deploy.objects.get(version="2026.11.1")
    page.locator("select[name=deploy]").select_option(str(first.pk))
    expect(page.get_by_text("Deploy: release 2026.11.1")).to_be_visible()
    expect(page.locator("h1")).to_contain_text("since the deploy")
    assert reader.axe_violations() == []
    reader.check()


@pytest.mark.parametrize("path", ["/models/", "/models/provider/claude-haiku-4/", "/compare/"])
def test_the_sentence_is_on_the_first_screen_of_a_phone(
    incident: Project, open_reader: Open, path: str
) -> None:
    reader = open_reader(width=390)
    reader.sign_in()
    page = reader.open(path)
    box = page.locator("h1").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < (420 if path != "/compare/" else 800)
    expect(page.locator("#q")).not_to_be_visible()
    page.get_by_role("button", name="Filters", exact=True).click()
    expect(page.locator("#q")).to_be_visible()
    page.locator("#share summary").click()
    assert reader.axe_violations() == []
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    reader.check()


def test_a_link_is_copied_with_its_times(incident: Project, open_reader: Open) -> None:
    reader = open_reader(permissions=["clipboard-read", "clipboard-write"])
    reader.sign_in()
    page = reader.open("/models/?range=7d&model=gpt-5")
    page.locator("#share summary").click()
    page.get_by_role("button", name="Copy link", exact=True).click()
    assert page.evaluate("navigator.clipboard.readText()").endswith("?range=7d&model=gpt-5")
    page.get_by_role("button", name="Copy link with these times").click()
    expect(page.get_by_text("Copied").last).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "range=" not in copied
    assert {"model=gpt-5", "from=", "to="} <= {
        part if part.startswith("model") else part.partition("=")[0] + "="
        for part in copied.partition("?")[2].split("&")
    }
    page.goto(copied)
    expect(page.locator("#times summary")).to_contain_text(" to ")
    reader.check()

"""The filter bar, saved views, keys and the tail, as a person uses them."""

from datetime import timedelta
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from diagnostics import clock
from diagnostics.accounts.models import Project, SavedView
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from diagnostics.store.partitions import ensure_partitions
from failsoft.events import PostedEvent
from tests.browser.conftest import Open, Reader
from tests.console import post_runs
from tests.diagnostics.builders import succeeded

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


PROD = {"provider": "a", "environment": "prod"}


@pytest.fixture
def goals(project: Project) -> Project:
    """Two goals, and events of two models."""
    now = clock.now()
    ensure_partitions(now.date(), (now + timedelta(days=1)).date())
    for model in ("haiku-4", "sonnet-4"):
        post_runs(project, 2, 1, now - timedelta(minutes=5), model=model, **PROD)
    for name, environment in (("run-hello", "prod"), ("run-other", "dev")):
        made = {"correlation_id": name, "environment": environment, "model": "gpt-5"}
        post_runs(project, 1, 0, now - timedelta(minutes=5), **made)
    fold()
    return project


def test_filters_apply_themselves_and_stay_in_the_address(goals: Project, reader: Reader) -> None:
    page = reader.open("/runs/")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("env:prod")
    page.keyboard.press("Enter")
    expect(page.get_by_text("run-other")).to_have_count(0)
    expect(page.get_by_text("run-hello")).to_be_visible()
    assert "q=env%3Aprod" in page.url
    page.get_by_role("link", name="7 d", exact=True).click()
    expect(page.locator(".segments [aria-current=true]").first).to_have_text("7 d")
    assert "range=7d" in page.url
    assert "q=env%3Aprod" in page.url
    page.get_by_role("link", name="Remove the filter").click()
    expect(page.get_by_text("run-other")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("run-other")).to_have_count(0)
    reader.check()


def test_a_list_is_picked_from_and_stays_open(goals: Project, reader: Reader) -> None:
    page = reader.open("/runs/?follow=calls")
    page.locator("#pick summary").click()
    page.locator("select[name=model]").select_option("haiku-4")
    expect(page.locator("#tail li")).to_have_count(3)
    expect(page.locator("#pick")).to_have_attribute("open", "")
    page.locator("select[name=outcome]").select_option("degraded")
    expect(page.locator("#tail li")).to_have_count(1)
    assert reader.axe_violations() == []
    reader.check()


def test_suggestions_are_of_the_term_that_is_typed(goals: Project, reader: Reader) -> None:
    page = reader.open("/runs/")
    page.locator("#q").type("-env:dev model:")
    offered = page.locator("#terms option").evaluate_all("all => all.map(o => o.value)")
    assert "-env:dev model:haiku-4" in offered
    reader.check()


def test_a_view_is_saved_shared_and_opened(goals: Project, reader: Reader) -> None:
    page = reader.open("/runs/?environment=prod")
    page.locator("#views summary").click()
    page.get_by_label("Save view as").fill("Production")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved as “Production”")).to_be_visible()
    page.get_by_role("link", name="Now", exact=True).click()
    page.goto(reader.base_url + "/views/")
    assert reader.axe_violations() == []
    page.get_by_role("button", name="Share", exact=True).click()
    expect(page.get_by_role("cell", name="project", exact=True)).to_be_visible()
    page.get_by_role("link", name="Production").click()
    page.wait_for_url("**/runs/?environment=prod")
    assert SavedView.objects.get().is_shared
    reader.check()


def test_g_and_a_letter_lead_to_pages(goals: Project, reader: Reader) -> None:
    page = reader.open("/")
    page.keyboard.press("g")
    page.keyboard.press("f")
    page.wait_for_url("**/failures/")
    page.keyboard.press("g")
    page.keyboard.press("m")
    page.wait_for_url("**/models/")
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_url("**/runs/")
    reader.check()


def test_the_tail_follows_and_pauses(goals: Project, reader: Reader) -> None:
    page = reader.open("/runs/?follow=calls&model=haiku-4")
    expect(page.locator("#tail li")).to_have_count(3)
    # What follows by itself offers no link to ask for it.
    expect(page.get_by_role("link", name="Refresh")).to_have_count(0)
    send(goals, "haiku-4")
    expect(page.locator("#tail li")).to_have_count(4, timeout=9_000)
    page.get_by_role("button", name="Pause").click()
    send(goals, "haiku-4")
    page.wait_for_timeout(4_500)
    expect(page.locator("#tail li")).to_have_count(4)
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#tail li")).to_have_count(5, timeout=9_000)
    reader.check()


def test_without_javascript_every_filter_works(goals: Project, open_reader: Open) -> None:
    reader = open_reader(java_script_enabled=False)
    reader.sign_in()
    page = reader.open("/runs/")
    page.locator("#pick summary").click()
    page.locator("select[name=environment]").select_option("prod")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("run-other")).to_have_count(0)
    expect(page.get_by_text("run-hello")).to_be_visible()
    page.locator("#times summary").click()
    page.locator("[name=from]").fill("2026-01-01T00:00")
    page.locator("[name=tz]").fill("Europe/Berlin")
    page.get_by_role("button", name="Apply").first.click()
    assert "tz=Europe" in page.url
    assert "environment=prod" in page.url
    expect(page.get_by_text("run-hello")).to_be_visible()


def test_a_phone_shows_it_without_scrolling_sideways(goals: Project, open_reader: Open) -> None:
    reader = open_reader(width=360)
    reader.sign_in()
    page = reader.open("/runs/?environment=prod&q=-model:none")
    page.get_by_role("button", name="Filters").click()
    for fold_id in ("times", "pick", "syntax", "views", "share"):
        page.locator(f"#{fold_id} summary").click()
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, fold_id
    assert reader.axe_violations() == []
    reader.check()


def send(project: Project, model: str) -> None:
    """Record one good call of this moment."""
    event = succeeded(
        event_id=str(uuid4()), occurred_at=clock.now().isoformat(), model=model, provider="a"
    )
    record(project.pk, [PostedEvent.model_validate(event)])

"""Journeys about runs: found by id, read to the cause, replayed; a model isolated."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from agents.breakers.models import Breaker
from agents.goals.models import Goal
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from failsoft.events import PostedEvent
from tests.browser.conftest import Open, Reader
from tests.console import make_goal, make_model
from tests.diagnostics.builders import degraded, succeeded, wire_event

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
OPERATIONS = 3


class Clicks:
    """Counts what a person clicks; typing and Enter are no clicks."""

    def __init__(self) -> None:
        self.made = 0

    def on(self, place: Locator) -> None:
        place.click()
        self.made += 1


def send(project: Project, at: datetime, *events: dict[str, Any], **told: object) -> None:
    given = [{**event, "occurred_at": at.isoformat(), **told} for event in events]
    record(project.pk, [PostedEvent.model_validate(event) for event in given])


def send_degraded(project: Project, reference: str, at: datetime, **told: object) -> None:
    invalid = wire_event(raw_output_preview='{"steps": [', validation_errors=None)
    second = wire_event(attempt=2, raw_output_preview='{"steps": [{', validation_errors=None)
    send(project, at, invalid, second, degraded(), correlation_id=reference, **told)


@pytest.fixture
def _runs(project: Project) -> None:
    """Runs of two external agents, now and two days ago, and a goal of ours."""
    now = clock.now() - timedelta(minutes=5)
    send_degraded(project, "anna/17-degraded", now, source="anna")
    send(project, now, succeeded(), correlation_id="anna/18-good", source="anna")
    send_degraded(project, "anna/3-old", now - timedelta(days=2), source="anna")
    send_degraded(project, "ben/1-degraded", now, source="ben")
    make_goal(project, "mine-1", status="completed", at=now)
    send(project, now, succeeded(), correlation_id="mine-1")
    fold()


@pytest.mark.usefixtures("_runs")
def test_any_run_is_found_by_its_prefix_in_two_clicks(reader: Reader) -> None:
    page, clicks = reader.open("/runs/?range=7d"), Clicks()
    for prefix, name in (("anna/3", "anna/3-old"), ("mine", "mine-1")):
        page.locator("#q").fill(f"corr:{prefix}")
        page.keyboard.press("Enter")
        rows = page.locator("table.runs a.name")
        expect(rows).to_have_text([name])
        clicks.made = 0
        clicks.on(rows)
        page.wait_for_url(f"**/runs/{name}/")
        expect(page.locator("h1")).to_be_visible()
        assert clicks.made <= 2
        assert reader.axe_violations() == []
        page.go_back()
    reader.check()


@pytest.mark.usefixtures("_runs")
def test_from_an_id_to_its_attempts_the_parse_lab_and_a_replay(reader: Reader) -> None:
    page, clicks = reader.open("/runs/"), Clicks()
    page.locator("#q").fill("corr:anna/17")
    page.keyboard.press("Enter")
    clicks.on(page.get_by_role("link", name="anna/17-degraded"))
    expect(page.locator("h1")).to_contain_text("Degraded after 2 attempts")
    expect(page.locator(".moment article, article.moment")).to_have_count(2)
    expect(
        page.get_by_text("changes from attempt 1").or_(page.get_by_text("since attempt 1"))
    ).to_be_visible()
    clicks.on(page.get_by_role("link", name="Open in Parse lab").first)
    expect(page.locator("#text")).to_have_value('{"steps": [')
    page.go_back()
    clicks.on(page.get_by_role("link", name="Replay").first)
    expect(page.locator("h1")).to_contain_text("samples would parse")
    assert clicks.made <= 4
    reader.check()


@pytest.mark.usefixtures("_runs")
def test_an_agents_degraded_runs_of_a_period_are_on_one_page(open_reader: Open) -> None:
    reader = open_reader()
    reader.sign_in()
    page = reader.open("/runs/?range=7d")
    page.locator("#q").fill("source:anna outcome:degraded")
    page.keyboard.press("Enter")
    expect(page.locator("table.runs a.name")).to_have_text(["anna/17-degraded", "anna/3-old"])
    since = clock.now() - timedelta(hours=3)
    page.locator("#times summary").click()
    page.locator("[name=from]").fill(f"{since:%Y-%m-%dT%H:%M}")
    page.locator("[name=tz]").fill("UTC")
    page.locator("#times").get_by_role("button", name="Apply").click()
    expect(page.locator("table.runs a.name")).to_have_text(["anna/17-degraded"])
    assert reader.axe_violations() == []
    reader.check()


def test_a_model_is_isolated_and_its_goals_say_who_can_go_on(
    project: Project, reader: Reader
) -> None:
    model = make_model(project)
    page, clicks = reader.open("/breakers/"), Clicks()
    clicks.on(page.get_by_text("Isolate…"))
    expect(page.locator("[name=operation]:checked")).to_have_count(OPERATIONS)
    page.get_by_label("Reason", exact=True).fill("costs too much")
    assert reader.axe_violations() == []
    clicks.on(page.get_by_role("button", name="Isolate model"))
    expect(page.locator("#breakers .badge", has_text="Isolated")).to_have_count(OPERATIONS)
    assert clicks.made <= 2
    assert Breaker.objects.filter(state="isolated").count() == OPERATIONS
    waits = {"reason": "circuit_open", "retry_at": clock.now().isoformat()}
    goal = make_goal(project, "held", language_model=model)
    Goal.objects.filter(pk=goal.pk).update(execution_eval=waits)
    reader.open("/runs/held/")
    expect(page.locator("h1")).to_contain_text("close its circuit breaker to continue")
    expect(page.get_by_text("next attempt")).to_have_count(0)
    reader.check()


def test_runs_are_followed_and_paused(project: Project, reader: Reader) -> None:
    now = clock.now() - timedelta(minutes=1)
    send(project, now, succeeded(), correlation_id="first")
    page = reader.open("/runs/")
    page.get_by_role("link", name="Follow runs").click()
    rows = page.locator("table.runs a.name")
    expect(rows).to_have_count(1)
    send(project, clock.now(), succeeded(), correlation_id="second")
    expect(rows).to_have_text(["second", "first"], timeout=9_000)
    page.get_by_role("button", name="Pause").click()
    send(project, clock.now(), succeeded(), correlation_id="third")
    page.wait_for_timeout(4_500)
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Resume").click()
    expect(rows).to_have_count(3, timeout=9_000)
    reader.check()


@pytest.mark.usefixtures("_runs")
def test_a_phone_shows_runs_and_a_run_without_scrolling_sideways(open_reader: Open) -> None:
    reader = open_reader(width=390)
    reader.sign_in()
    for path in ("/runs/", "/runs/?follow=calls", "/runs/anna/17-degraded/", "/breakers/"):
        page = reader.open(path)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        assert reader.axe_violations() == []
    reader.check()

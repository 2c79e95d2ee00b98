"""What people do in the console, in a real browser."""

import re
from datetime import datetime
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from agents.goals.models import Goal
from diagnostics.accounts.models import Profile, Project
from tests.agents.conftest import Planner, work_off
from tests.browser.conftest import Open, Reader

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PLAN = (
    '{"steps": [{"step_id": "step_1", "tool": {"name": "echo", "args": {"a": 1}}},'
    ' {"step_id": "step_2", "dependencies": ["step_1"], "tool": "echo"}]}'
)


@pytest.mark.slow
@pytest.mark.smoke
def test_sign_in_read_the_verdict_submit_a_goal_and_watch_it_end(
    incident: Project, planner: Planner, open_reader: Open
) -> None:
    reader = open_reader()
    page = reader.page
    reader.sign_in()
    expect(page.locator("h1")).to_contain_text("Degrading since")
    expect(page.locator("h1")).to_contain_text("claude-haiku-4")
    page.locator(".bar").get_by_role("link", name="Runs", exact=True).click()
    page.get_by_role("link", name="New goal").click()
    page.get_by_label("Goal", exact=True).fill("Say hello twice")
    planner.will_say("no plan at all", PLAN)
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("h1")).to_contain_text("Queued")
    work_off()
    expect(page.locator("h1")).to_contain_text("Completed: valid plan, recovered after 2 attempts")
    expect(page.get_by_role("img", name=re.compile("plan of 2 steps"))).to_be_visible()
    expect(page.locator("[data-poll]")).to_have_count(0)
    reader.check()


def requests_during(page: Page, milliseconds: int) -> list[str]:
    """Return the paths that a page asks for; the browser fetches the icon when it likes."""
    paths: list[str] = []
    page.on("request", lambda request: paths.append(urlsplit(request.url).path))
    page.wait_for_timeout(milliseconds)
    return [path for path in paths if not path.endswith("/logo.svg")]


def test_page_follows_a_goal_while_it_runs_and_stops_at_the_end(
    planner: Planner, reader: Reader
) -> None:
    planner.will_say("nonsense", "more nonsense")
    goal = planner.submit("Say hello", mode="plan")
    page = reader.open(f"/runs/{goal.correlation_id}/")
    Goal.objects.filter(pk=goal.pk).update(status="running")
    expect(page.locator("h1")).to_contain_text("Planning: 0 attempts so far")
    Goal.objects.filter(pk=goal.pk).update(status="queued")
    work_off()
    expect(page.locator("h1")).to_contain_text("Degraded: no valid plan after 2 attempts")
    assert page.title().startswith("Degraded")
    assert requests_during(page, 2_500) == []
    reader.check()


def test_hidden_page_asks_nothing(planner: Planner, reader: Reader) -> None:
    goal = planner.submit("Say hello", mode="plan")
    page = reader.open(f"/runs/{goal.correlation_id}/")
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
    assert requests_during(page, 2_500) == []


def test_open_folds_and_focus_survive_a_refresh(planner: Planner, reader: Reader) -> None:
    planner.will_say("nonsense", '{"kind": "ask_user", "question": "Which?"}')
    goal = planner.submit("Say hello", mode="next_step")
    work_off()
    Goal.objects.filter(pk=goal.pk).update(status="running", next_user_question=None)
    page = reader.open(f"/runs/{goal.correlation_id}/")
    page.locator("details[id^=feedback] summary").click()
    Goal.objects.filter(pk=goal.pk).update(pdca_phase="do")
    expect(page.locator("h1")).to_contain_text("Running the plan")
    expect(page.locator("details[id^=feedback]")).to_have_attribute("open", "")


def test_waiting_goal_is_answered(planner: Planner, reader: Reader) -> None:
    planner.will_say(
        '{"kind": "ask_user", "question": "Which branch?"}', '{"kind": "finish", "answer": "done"}'
    )
    goal = planner.submit("Delete a branch")
    work_off()
    page = reader.open(f"/runs/{goal.correlation_id}/")
    expect(page.get_by_role("region", name="Waiting for your answer")).to_contain_text(
        "Which branch?"
    )
    page.get_by_label("Answer", exact=True).fill("the stale one")
    page.get_by_role("button", name="Answer").click()
    work_off()
    expect(page.locator("h1")).to_contain_text("Completed")
    reader.check()


def test_running_goal_is_cancelled(planner: Planner, reader: Reader) -> None:
    goal = planner.submit("Say hello")
    page = reader.open(f"/runs/{goal.correlation_id}/")
    page.get_by_role("button", name="Cancel goal").click()
    expect(page.locator("h1")).to_contain_text("Cancelled")
    reader.check()


def test_reference_is_found(planner: Planner, reader: Reader) -> None:
    goal = planner.submit("Say hello", correlation_id="run-8842")
    reader.page.locator("#find").fill("run-8842")
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_url(f"**/runs/{goal.correlation_id}/")


def test_filters_narrow_the_page_and_can_be_taken_off(incident: Project, reader: Reader) -> None:
    page = reader.open("/")
    page.locator("#pick summary").click()
    page.locator("select[name=model]").select_option("gpt-5")
    expect(page.locator("h1")).to_contain_text("within baseline")
    assert "model=gpt-5" in page.url
    page.get_by_role("link", name="7 d").click()
    expect(page.get_by_role("link", name="7 d")).to_have_attribute("aria-current", "true")
    assert "range=7d" in page.url
    assert "model=gpt-5" in page.url
    page.get_by_role("link", name="Remove the filter").click()
    expect(page.locator("table.series tbody tr")).to_have_count(3)
    page.go_back()
    expect(page.locator("table.series tbody tr")).to_have_count(1)
    reader.check()


def test_times_are_in_the_viewers_zone_and_utc_is_in_the_title(
    incident: Project, reader: Reader
) -> None:
    page = reader.open("/")
    told = page.locator("h1 time")
    begun = datetime.fromisoformat(told.get_attribute("datetime") or "")
    oslo = begun.astimezone(ZoneInfo("Europe/Oslo"))
    expect(told).to_contain_text(f"{oslo:%H:%M}")
    assert "UTC" in (told.get_attribute("title") or "")


def test_a_zone_that_the_browser_does_not_know_is_that_of_the_browser(
    person: User, open_reader: Open
) -> None:
    Profile.objects.create(user=person, zone="localtime")
    reader = open_reader()
    reader.sign_in()
    page = reader.open("/incidents/")
    expect(page.locator("span[data-zone]").first).to_have_text("Europe/Oslo")
    reader.check()


def test_sign_out_ends_the_session(reader: Reader) -> None:
    page = reader.page
    page.locator(".bar > details.project > summary").click()
    page.get_by_role("button", name="Sign out").click()
    reader.open("/runs/")
    assert "/accounts/login/" in page.url

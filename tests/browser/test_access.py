"""Everybody can read it: without JavaScript, on a phone, by keyboard, with a screen reader."""

import gzip

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Response, expect

from agents.demo.loading import load
from agents.goals.models import Goal
from diagnostics import clock
from diagnostics.accounts.models import Membership, Project
from tests.agents.conftest import Planner, work_off
from tests.browser.conftest import Open, Reader
from tests.console_pages import console_pages, unasked
from tests.diagnostics.alerting.notifications.building import make_channel, make_incident
from tests.diagnostics.reports.conftest import make_subscription

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PLAN = (
    '{"steps": [{"step_id": "step_1", "tool": {"name": "echo", "args": {"a": 1}}},'
    ' {"step_id": "step_2", "dependencies": ["step_1"], "tool": "nobody"},'
    ' {"step_id": "step_3", "dependencies": ["step_2"], "tool": "echo"}]}'
)


@pytest.fixture
def story(incident: Project, planner: Planner) -> Goal:
    """A goal that was repaired and then failed, among an incident; another one waits."""
    planner.will_say('{"steps": [', PLAN)
    goal = planner.submit("Say hello", mode="plan", correlation_id="story")
    work_off()
    planner.will_say('{"kind": "ask_user", "question": "Which branch?"}')
    planner.submit("Delete it", correlation_id="waiting")
    work_off()
    return goal


ALSO = [
    "/?model=claude-haiku-4&range=7d",
    "/?model=nobody",
    "/runs/?q=nobody",
    "/runs/waiting/",
    "/find/?reference=nobody",
    "/accounts/password/change/",
    "/accounts/logout/",
]


@pytest.fixture
def pages(story: Goal, person: User) -> list[str]:
    """Every page there is, as an administrator of the project sees it."""
    project = story.project
    Membership.objects.filter(user=person).update(role=Membership.Role.ADMIN)
    load(project, clock.now(), volume=0.05)
    make_channel(project)
    make_subscription(project, person)
    make_incident(project)
    client = Client()
    client.force_login(person)
    assert unasked(client, project) == set()
    return [*console_pages(client, project), *ALSO]


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_axe_violations_and_no_complaints(
    pages: list[str], open_reader: Open, scheme: str, width: int
) -> None:
    reader = open_reader(width, color_scheme=scheme)
    reader.sign_in()
    found = {}
    for path in pages:
        reader.open(path)
        if violations := reader.axe_violations():
            found[path] = violations
        # Axe writes to frames, and that of a mail takes nothing.
        reader.complaints = [
            c for c in reader.complaints if "[DOM]" not in c and "'postMessage'" not in c
        ]
        reader.check()
    assert found == {}


def test_sign_in_and_error_pages_have_no_axe_violations(open_reader: Open) -> None:
    reader = open_reader()
    for path in ("/accounts/login/", "/nowhere/", "/accounts/signup/"):
        reader.open(path)
        assert reader.axe_violations() == []


@pytest.mark.parametrize("width", [360, 768, 1440, 2560])
def test_no_page_scrolls_sideways(pages: list[str], open_reader: Open, width: int) -> None:
    reader = open_reader(width=width)
    reader.sign_in()
    wide = []
    for path in pages:
        page = reader.open(path)
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(path)
    assert wide == []


def test_empty_project_on_a_phone_has_no_violations(
    person: User, project: Project, open_reader: Open
) -> None:
    reader = open_reader(width=360)
    reader.sign_in()
    client = Client()
    client.force_login(person)
    found = {}
    for path in console_pages(client, project):
        page = reader.open(path)
        if page.evaluate("document.documentElement.scrollWidth") > 360:
            found[path] = ["scrolls sideways"]
        if violations := reader.axe_violations():
            found[path] = violations
    assert found == {}
    reader.check()


def test_everything_works_without_javascript(
    story: Goal, planner: Planner, open_reader: Open
) -> None:
    reader = open_reader(java_script_enabled=False)
    reader.sign_in()
    page = reader.page
    expect(page.locator("h1")).to_contain_text("Degrading since")
    page.locator("#pick summary").click()
    page.locator("select[name=model]").select_option("gpt-5")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("h1")).to_contain_text("within baseline")
    page.get_by_role("link", name="Remove the filter").click()
    expect(page.locator("h1")).to_contain_text("Degrading since")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Runs", exact=True).click()
    page.get_by_role("link", name="New goal").click()
    page.get_by_label("Goal", exact=True).fill("Say hello")
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("h1")).to_contain_text("Queued")
    page.get_by_role("button", name="Cancel goal").click()
    expect(page.locator("h1")).to_contain_text("Cancelled")


def test_keyboard_alone_reaches_the_goal(story: Goal, reader: Reader) -> None:
    page = reader.open("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    reader.open("/runs/")
    link = page.locator("a.name", has_text="story")
    for _ in range(40):
        page.keyboard.press("Tab")
        if link.evaluate("element => element === document.activeElement"):
            break
    outline = link.evaluate("element => getComputedStyle(element).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/story/")


def test_menu_opens_and_closes_by_keyboard(reader: Reader) -> None:
    page = reader.page
    summary = page.locator(".bar > details.project > summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Account")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Account")).to_be_hidden()
    expect(summary).to_be_focused()


def test_pages_keep_their_budgets(pages: list[str], reader: Reader) -> None:
    answers: list[Response] = []

    def hear(answer: Response) -> None:
        answers.append(answer)

    reader.page.on("response", hear)
    over = {path: found for path in pages if (found := _over_budget(path, reader, answers))}
    assert over == {}


def _over_budget(path: str, reader: Reader, answers: list[Response]) -> list[str]:
    answers.clear()
    page = reader.open(path)
    page.wait_for_load_state("networkidle")
    nodes = page.evaluate("document.querySelectorAll('*').length")
    # What a page fetches after it is there holds it up neither, nor does a mail in its frame.
    loaded = [
        answer
        for answer in answers
        if answer.request.resource_type in {"document", "stylesheet", "script"}
        and answer.frame == page.main_frame
        and not 300 <= answer.status < 400
    ]
    # Compressed, as they are served.
    scripts = [gzip.compress(answer.body()) for answer in loaded if answer.url.endswith(".js")]
    html = len(loaded[0].body())
    found = {
        f"{nodes} nodes": nodes > 1_500,
        f"{len(loaded)} requests": len(loaded) > 4,
        f"{html} bytes of HTML": html > 60 * 1024,
        "bytes of scripts": sum(map(len, scripts)) > 60 * 1024,
    }
    return [told for told, is_over in found.items() if is_over]

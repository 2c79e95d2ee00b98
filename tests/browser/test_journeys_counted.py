"""Journeys of others: beginners, comparers, exporters, readers of other eyes, zones and roles."""

import csv
import re
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Error, Route, expect

from diagnostics import clock
from diagnostics.accounts.models import Membership, Project
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from tests.browser.conftest import PASSWORD, Open, Reader
from tests.browser.journey import Journey
from tests.console import make_member, post_runs
from tests.diagnostics.alerting.notifications.building import make_incident
from tests.diagnostics.builders import make_event, succeeded

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
Role = Membership.Role
HEBREW = "מודל-קטן"


def fail_calls(project: Project, count: int, **fields: object) -> None:
    """Record calls of the last minutes whose answers were cut off."""
    now = clock.now()
    record(
        project.pk,
        [
            make_event(
                occurred_at=(now - timedelta(seconds=40 + number)).isoformat(),
                correlation_id=f"cut-{number}",
                parse_error_type="truncated",
                **fields,
            )
            for number in range(count)
        ],
    )


def test_a_colleague_is_invited_makes_a_key_and_sends_the_first_event(
    project: Project, open_reader: Open
) -> None:
    Membership.objects.update(role=Role.ADMIN)
    reader = open_reader()
    reader.sign_in()
    journey = Journey("a colleague, a key and the first event", reader.open("/settings/members/"))
    page = journey.page
    page.get_by_label("Role", exact=True).select_option("admin")
    journey.click(page.get_by_role("button", name="Invite"))
    link = page.locator(".key-box pre").inner_text()
    User.objects.create_user("bea", password=PASSWORD)
    colleague = open_reader()
    journey.page = page = colleague.open(urlsplit(link).path)
    journey.click(page.get_by_role("link", name="Sign in and join"))
    page.fill("[name=login]", "bea")
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    journey.click(page.get_by_role("button", name="Join"))
    journey.click(page.locator(".bar nav summary"))
    journey.click(page.get_by_role("link", name="Data", exact=True))
    journey.click(page.get_by_label("Data").get_by_role("link", name="Instrument your agent"))
    journey.click(page.get_by_role("link", name="2. Create a key"))
    journey.click(page.get_by_role("button", name="Create key"))
    key = page.locator("#issued").inner_text()
    answer = httpx.post(
        f"{reader.base_url}/api/v1/events",
        json=[{**succeeded(), "occurred_at": clock.now().isoformat()}],
        headers={"Authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 200
    fold()
    expect(page.get_by_role("heading", name="Setup complete")).to_be_visible()
    colleague.check()


def test_two_prompt_versions_are_told_apart_down_to_a_failure(
    project: Project, reader: Reader
) -> None:
    now, named = clock.now(), {"source": "agent", "provider": "acme", "model": "m-1"}
    post_runs(project, 200, 0, now - timedelta(hours=9), prompt_version="v1", **named)
    post_runs(project, 60, 0, now - timedelta(minutes=5), prompt_version="v2", **named)
    fail_calls(project, 30, prompt_version="v2", **named)
    fold()
    journey = Journey("what the new prompt version broke", reader.open("/"))
    page = journey.page
    journey.click(page.locator(".bar summary", has_text="More"))
    journey.click(page.get_by_role("link", name="Prompts", exact=True))
    versions = page.get_by_role("table", name="Call failure rate by version and model")
    expect(versions.get_by_role("row").nth(1)).to_contain_text("after v1")
    expect(versions.get_by_role("row").nth(1)).to_contain_text("+33.3 pt")
    journey.click(versions.get_by_role("link", name="Truncated"))
    expect(page.locator("h1")).to_contain_text("Truncated")
    reader.check()


def test_the_degraded_runs_of_a_week_are_exported(
    incident: Project, reader: Reader, tmp_path: Path
) -> None:
    journey = Journey(
        "the degraded runs of a week as a file", reader.open("/runs/?outcome=degraded")
    )
    page = journey.page
    journey.click(page.get_by_role("link", name="7 d"))
    expect(page).to_have_url(re.compile("range=7d"))
    journey.click(page.locator("#share summary"))
    with page.expect_download() as download:
        journey.click(page.get_by_role("link", name="Export CSV"))
    download.value.save_as(tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["outcome"] for row in rows} == {"degraded"}
    assert len(rows) > 70
    reader.check()


def test_the_bad_one_of_thirty_models_is_first_and_one_click_away(
    project: Project, reader: Reader
) -> None:
    now = clock.now()
    for number in range(30):
        named = {"provider": f"provider-{number % 6}", "model": f"model-{number:02}"}
        post_runs(project, 60, 1, now - timedelta(hours=30), **named)
        bad = 20 if number == 17 else 0
        post_runs(project, 30 - bad, bad, now - timedelta(minutes=5), **named)
    fold()
    journey = Journey("the one bad model of thirty", reader.open("/"))
    page = journey.page
    expect(page.locator("h1")).to_contain_text("model-17")
    assert page.evaluate("document.querySelectorAll('*').length") <= 1_500
    journey.click(
        page.locator("table.series tbody").get_by_role("link", name="model-17", exact=True)
    )
    expect(page.locator("h1")).to_contain_text("model-17")
    reader.check()


@pytest.mark.parametrize("width", [390, 1440])
def test_names_written_right_to_left_leave_figures_in_their_order(
    project: Project, open_reader: Open, width: int
) -> None:
    named = {"provider": "ספק", "model": HEBREW}
    now = clock.now()
    post_runs(project, 400, 2, now - timedelta(hours=30), **named)
    post_runs(project, 20, 60, now - timedelta(minutes=3), **named)
    fail_calls(project, 30, raw_output_preview='{"מטרה": "שלום", "steps": [', **named)
    fold()
    reader = open_reader(width)
    reader.sign_in()
    journey = Journey("the failures of a model named right to left", reader.page)
    page = journey.page
    heading = page.locator("h1")
    expect(heading).to_contain_text(HEBREW)
    # As it is drawn: the figure after the name stands to its right, or in a later line.
    order = heading.evaluate(
        """(heading, called) => {
          const text = heading.textContent, walker = document.createTreeWalker(heading, 4);
          const box = (offset) => {
            let node, before = 0;
            walker.currentNode = heading;
            while ((node = walker.nextNode())) {
              if (offset < before + node.length) break;
              before += node.length;
            }
            const range = document.createRange();
            range.setStart(node, offset - before);
            range.setEnd(node, offset - before + 1);
            return range.getBoundingClientRect();
          };
          const name = box(text.indexOf(called) + called.length - 1);
          const figure = box(text.search(/\\d[\\d.]*\\s?%/));
          return figure.top > name.top + 4 || figure.left > name.left;
        }""",
        HEBREW,
    )
    assert order, heading.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page = reader.open(f"/failures/?q=model:{HEBREW}")
    journey.click(page.get_by_role("link", name="Truncated").first)
    expect(page.locator(".preview").first).to_contain_text("מטרה")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert reader.axe_violations() == []
    reader.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_incident_is_printed_without_controls_in_dark_ink_on_white(
    project: Project, open_reader: Open, scheme: str
) -> None:
    incident = make_incident(project)
    reader = open_reader(color_scheme=scheme)
    reader.sign_in()
    page = Journey("an incident on paper", reader.open(f"/incidents/{incident.pk}/")).page
    page.emulate_media(media="print", color_scheme=scheme)  # type: ignore[arg-type]
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".bar")).to_be_hidden()
    expect(page.get_by_role("button", name="Acknowledge")).to_be_hidden()
    ink = page.locator("h1").evaluate("one => getComputedStyle(one).color")
    assert max(map(int, re.findall(r"\d+", ink)[:3])) < 60
    zone = page.get_by_text("times in").first
    expect(zone).to_contain_text("Europe/Oslo")
    assert page.pdf(format="A4").startswith(b"%PDF")
    reader.check()


def test_with_reduced_motion_nothing_moves(incident: Project, open_reader: Open) -> None:
    make_incident(incident)
    reader = open_reader(reduced_motion="reduce")
    reader.sign_in()
    page = Journey("a page that keeps still", reader.page).page
    moving = "document.getAnimations().length"
    for path in ("/", "/live/", "/runs/", "/incidents/", "/models/"):
        reader.open(path)
        assert page.evaluate(moving) == 0, path
    page.locator("#pick summary").click()
    assert page.evaluate(moving) == 0
    behaviour = "getComputedStyle(document.documentElement).scrollBehavior"
    assert page.evaluate(behaviour) == "auto"
    reader.check()


def test_on_a_slow_line_the_last_filter_wins_and_the_page_says_that_it_loads(
    incident: Project, reader: Reader
) -> None:
    journey = Journey("a filter on a slow line", reader.open("/models/"))
    page = journey.page
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(re.compile(r"/models/\?.*range="), hold)
    journey.click(page.get_by_role("link", name="30 d"))
    expect(page.locator("#busy")).to_be_visible()
    # What was there stays readable, and can be clicked.
    expect(page.get_by_role("table").first).to_be_visible()
    journey.click(page.get_by_role("link", name="7 d"))
    while len(held) < 2:
        page.wait_for_timeout(50)
    for route in reversed(held):
        # The page took the first one back.
        with suppress(Error):
            route.continue_()
    expect(page.get_by_role("link", name="7 d")).to_have_attribute("aria-current", "true")
    assert "range=7d" in page.url
    expect(page.locator("#busy")).to_be_hidden()


def test_the_times_of_a_page_are_read_in_another_zone(incident: Project, open_reader: Open) -> None:
    reader = open_reader(timezone_id="Australia/Eucla", locale="de-DE")
    reader.sign_in()
    page = reader.page
    journey = Journey("the times of a colleague elsewhere", reader.open("/models/"))
    journey.click(page.locator("#times summary"))
    box = page.get_by_label("Time zone")
    expect(box).to_have_attribute("placeholder", "Australia/Eucla")
    box.fill("America/St_Johns")
    journey.click(page.locator("#times").get_by_role("button", name="Apply"))
    expect(page).to_have_url(re.compile("tz=America"))
    page = reader.open("/?tz=America/St_Johns")
    told = page.locator("time").first
    assert "-" in (told.get_attribute("title") or "")
    reader.check()


def test_a_viewer_reads_what_an_operator_does_in_one_click(
    project: Project, open_reader: Open
) -> None:
    incident = make_incident(project)
    Membership.objects.update(role=Role.VIEWER)
    operator = make_member(project, "olga", Role.OPERATOR)
    operator.set_password(PASSWORD)
    operator.save()
    viewer = open_reader()
    viewer.sign_in()
    journey = Journey("a viewer calls an operator", viewer.open("/"))
    expect(journey.page.get_by_role("button", name="Acknowledge")).to_have_count(0)
    journey.click(journey.page.get_by_role("link", name=f"Incident #{incident.pk}").first)
    for verb in ("Acknowledge", "Resolve"):
        expect(journey.page.get_by_role("button", name=verb)).to_have_count(0)
    assert viewer.axe_violations() == []
    other = open_reader()
    other.sign_in("olga")
    second = Journey("an operator takes an incident", other.open("/"))
    second.click(second.page.get_by_role("button", name="Acknowledge").first)
    expect(second.page.locator("main")).to_contain_text("Acknowledged")
    page = journey.page
    page.reload()
    expect(page.locator("main")).to_contain_text("olga")
    viewer.check()
    other.check()


def test_an_incident_is_worked_by_the_names_that_a_screen_reader_says(
    project: Project, reader: Reader
) -> None:
    incident = make_incident(project)
    page = reader.open("/")
    journey = Journey("an incident by names alone", page)
    for landmark, name in (("navigation", "Main"), ("main", None)):
        expect(page.get_by_role(landmark, name=name)).to_have_count(1)  # type: ignore[arg-type]
    journey.click(page.get_by_role("link", name=f"Incident #{incident.pk}").first)
    tree = page.locator("body").aria_snapshot()
    nameless = re.findall(
        r"^\s*- (?:link|button|textbox|combobox|checkbox)\s*$", tree, re.MULTILINE
    )
    assert nameless == [], tree
    levels = [int(level) for level in re.findall(r"heading .*\[level=(\d)\]", tree)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    expect(page.locator("main [aria-live=polite]").first).to_contain_text("Incident")
    journey.click(page.get_by_role("button", name="Acknowledge"))
    expect(page.get_by_role("status").first).to_be_attached()
    reader.check()

"""The chart of a model in a real browser: zoom on request, by mouse and by keyboard."""

import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from failsoft.events import PostedEvent
from tests.browser.conftest import Open, Reader
from tests.diagnostics.builders import succeeded

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]
PAGE = "/models/provider/claude-haiku-4/"
PAGES = ("/models/", PAGE, "/compare/?with=same&b=model:gpt")


@pytest.fixture
def told(incident: Project) -> Project:
    """The incident, folded: a model has a page once it was counted."""
    fold()
    return incident


def send_calls(project: Project) -> None:
    """Record calls that tell their latency and tokens: some in every slot of three hours."""
    named = {"provider": "provider", "model": "claude-haiku-4", "name": "graph.next_step.succeeded"}
    told = {"latency_ms": 1_800, "input_tokens": 900, "output_tokens": 300}
    for minutes in range(4, 180, 10):
        at = (clock.now() - timedelta(minutes=minutes)).isoformat()
        record(project.pk, [PostedEvent.model_validate(succeeded(occurred_at=at, **named, **told))])
    fold()


def zoom(reader: Reader) -> None:
    reader.open(PAGE)
    reader.page.click("[data-zoom]")
    reader.page.wait_for_selector(".u-over")


def test_the_page_loads_four_files_until_zoom_is_asked_for(told: Project, reader: Reader) -> None:
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    reader.open(PAGE)
    reader.page.wait_for_load_state("networkidle")
    assert len([path for path in asked if not path.endswith(".svg")]) <= 4
    reader.page.click("[data-zoom]")
    reader.page.wait_for_selector(".u-over")
    assert {path.rpartition("/")[2] for path in asked[-3:]} == {
        "zoom.js",
        "uPlot.iife.min.js",
        "uPlot.min.css",
    }
    reader.check()


def test_a_dragged_range_becomes_the_range_of_the_page(told: Project, reader: Reader) -> None:
    zoom(reader)
    box = reader.page.locator(".u-over").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    reader.page.mouse.move(box["x"] + box["width"] * 0.5, middle)
    reader.page.mouse.down()
    reader.page.mouse.move(box["x"] + box["width"] * 0.8, middle, steps=4)
    reader.page.mouse.up()
    link = reader.page.get_by_role("link", name="Show only this range")
    reader.page.wait_for_timeout(200)
    query = parse_qs(urlsplit(link.get_attribute("href") or "").query)
    assert set(query) == {"from", "to"}
    link.click()
    reader.page.wait_for_url("**/*from=*")
    assert reader.page.locator(".over-time:not(.sums, .lines) .curve").is_visible()
    reader.check()


def test_the_chart_is_moved_by_keys_and_closed_again(told: Project, reader: Reader) -> None:
    zoom(reader)
    before = reader.page.locator(".zoomed [aria-live]").inner_text()
    # The first button, zoom in, has the focus.
    reader.page.keyboard.press("Enter")
    reader.page.wait_for_timeout(200)
    assert reader.page.locator(".zoomed [aria-live]").inner_text() != before
    reader.page.get_by_role("button", name="Back to the drawing").press("Enter")
    assert reader.page.locator("[data-still]").first.is_visible()
    assert reader.page.locator("[data-zoom]").first.is_enabled()
    reader.check()


def test_latency_and_tokens_are_zoomed_like_the_rate(told: Project, reader: Reader) -> None:
    send_calls(told)
    reader.open(PAGE)
    reader.page.get_by_role("button", name="Zoom Latency").click()
    reader.page.wait_for_selector(".lines .u-over")
    assert "p95" in reader.page.locator(".lines .u-legend").inner_text()
    reader.page.get_by_role("link", name="Data table of Latency").click()
    table = reader.page.get_by_role("table", name="Latency", exact=True)
    assert table.get_by_role("row").count() > 2
    assert "table=latency" in reader.page.url
    reader.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_the_pages_have_no_axe_violation_and_fit_a_phone(
    told: Project, open_reader: Open, path: str, scheme: str
) -> None:
    reader = open_reader(width=360, color_scheme=scheme)
    reader.sign_in()
    reader.open(path)
    assert reader.axe_violations() == []
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert reader.page.evaluate(wide) is False
    reader.check()


def test_without_javascript_the_drawing_and_its_table_are_there(
    told: Project, open_reader: Open
) -> None:
    reader = open_reader(java_script_enabled=False)
    reader.sign_in()
    page = reader.open(PAGE)
    assert page.locator(".over-time:not(.sums, .lines) .curve").is_visible()
    assert not page.locator("[data-zoom]").first.is_visible()
    page.click("text=Data table")
    # The sums behind an alarm, where there is one, have a table of their own.
    assert page.get_by_role("table", name="Call failure rate").is_visible()
    page.goto(f"{reader.base_url}/compare/")
    page.select_option("#with", "week")
    page.click("text=Compare >> nth=-1")
    assert "with=week" in page.url


def test_values_are_read_under_the_pointer_and_by_arrow_keys(told: Project, reader: Reader) -> None:
    send_calls(told)
    page = reader.open(PAGE)
    for chart in page.locator("[data-chart]").all():
        curve, readout = chart.locator("svg.curve"), chart.locator(".readout")
        curve.focus()
        page.keyboard.press("End")
        last = readout.inner_text()
        page.keyboard.press("ArrowLeft")
        assert readout.inner_text() != last
        curve.hover(position={"x": 3, "y": 20})
        first = readout.inner_text()
        page.keyboard.press("Home")
        expect(readout).to_have_text(first)
    assert " of " in page.locator("#page .readout").first.inner_text()
    # The slot of the moment may have no calls yet.
    page.locator(".lines svg.curve").first.press("End")
    page.keyboard.press("ArrowLeft")
    latency = page.locator(".lines .readout").first.inner_text()
    assert re.search(r" · p50 \S+ m?s · p95 \S+ m?s$", latency)
    assert reader.axe_violations() == []
    reader.check()

"""Lists: sorted by their heads, acted on many rows at once, read as cards on a phone."""

import pytest
from playwright.sync_api import ViewportSize, expect

from diagnostics.accounts.models import Membership, Project
from diagnostics.alerting.incident_models import Incident
from diagnostics.prices.models import Price
from tests.browser.conftest import Open, Reader
from tests.console import post_runs, recently
from tests.diagnostics.alerting.notifications.building import make_incident

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PHONE: ViewportSize = {"width": 390, "height": 844}
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_models_are_sorted_by_a_head_and_back_by_keyboard(project: Project, reader: Reader) -> None:
    for number, name in enumerate(("aa", "bb", "cc")):
        post_runs(project, 40 * (number + 1), number, recently(), model=name)
    page = reader.open("/models/")
    rows = page.locator(".matrix tbody th")
    page.get_by_role("link", name="Calls", exact=True).press("Enter")
    expect(page.get_by_role("columnheader", name="Calls")).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(rows.first).to_contain_text("cc")
    page.get_by_role("link", name="Calls").press("Enter")
    expect(rows.first).to_contain_text("aa")
    assert reader.axe_violations() == []
    page.get_by_role("link", name="sort by excess").click()
    expect(page.locator("[aria-sort]")).to_have_count(0)
    reader.check()


@pytest.mark.parametrize("path", ["/models/", "/runs/", "/prompts/"])
def test_on_a_phone_a_wide_table_is_cards_that_lose_no_column(
    project: Project, reader: Reader, path: str
) -> None:
    post_runs(project, 40, 4, recently(), model="a-model", prompt_version="v1")
    page = reader.open(path)
    table = page.locator("table.cards").first
    wide = table.locator("tbody tr").first.inner_text().split()
    page.set_viewport_size(PHONE)
    assert page.evaluate(WIDER) == 0
    assert table.evaluate("one => one.scrollWidth - one.clientWidth") <= 0
    narrow = table.locator("tbody tr").first.inner_text().split()
    if path != "/runs/":  # whose environment has its place on the page of the run
        assert set(wide) - set(narrow) <= {"·"}
    assert reader.axe_violations() == []
    reader.check()


def test_incidents_are_acknowledged_together_and_what_is_chosen_outlives_a_refresh(
    project: Project, reader: Reader
) -> None:
    for name in ("a", "b", "c"):
        make_incident(project, name)
    page = reader.open("/incidents/")
    page.get_by_label("Select all open incidents").check()
    expect(page.locator("[data-picked]")).to_have_text("3 selected")
    page.get_by_role("checkbox", name="anthropic/b").uncheck()
    with page.expect_response(lambda answer: answer.request.resource_type == "xhr"):
        page.evaluate("htmx.trigger('[data-poll]', 'seen')")
    expect(page.locator("[data-picked]")).to_have_text("2 selected")
    assert reader.axe_violations() == []
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("2 incidents acknowledged")).to_be_visible()
    assert Incident.objects.filter(state="acknowledged").count() == 2
    reader.check()


def test_incidents_are_silenced_together_without_javascript_on_a_phone(
    project: Project, open_reader: Open
) -> None:
    reader = open_reader(PHONE["width"], java_script_enabled=False)
    make_incident(project, "a")
    reader.sign_in()
    page = reader.open("/incidents/")
    page.locator("[name=id]").check()
    page.get_by_label("Silence for").select_option("4")
    page.get_by_role("button", name="Silence").click()
    expect(page.get_by_text("Silenced for 4 hours")).to_be_visible()


def test_a_table_that_is_too_wide_scrolls_by_itself_with_what_only_ears_read(
    project: Project, reader: Reader
) -> None:
    Membership.objects.update(role=Membership.Role.ADMIN)
    amounts = {"input_per_million": 1, "output_per_million": 1, "valid_from": "2026-11-01"}
    names = {"provider": "W" * 100, "model": "W" * 200, "edition": "W" * 64}
    Price.objects.create(project=project, **names, **amounts)
    page = reader.open("/settings/prices/")
    page.set_viewport_size({"width": 1000, "height": 800})
    assert page.locator(".scroll").evaluate("one => one.scrollWidth > one.clientWidth")
    assert page.evaluate(WIDER) == 0

"""Where an administrator reads what degrades, and finds one run of weeks ago again."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from agents.console.run_list import PAGE
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.saved_states import ensure_standard_rules
from tests.browser.conftest import Reader
from tests.console import make_goal, make_model, post_runs

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_m_6_each_model_has_its_share_and_the_threshold_that_alarms(
    incident: Project, reader: Reader
) -> None:
    ensure_standard_rules()
    page = reader.open("/")
    row = page.locator("table.series tbody tr", has_text="claude-haiku-4")
    expect(row).to_contain_text("provider")
    expect(row).to_contain_text(re.compile(r"50(\.0)?\s%"))
    reader.open("/alerts/rules/")
    expect(page.get_by_text("failed calls", exact=False).first).to_be_visible()
    reader.check()


def test_m_7_history_is_narrowed_by_model_time_and_reference_and_paged(
    project: Project, reader: Reader
) -> None:
    now = clock.now()
    models = [make_model(project, name) for name in ("haiku-4", "sonnet-4")]
    for number in range(PAGE + 5):
        at = now - timedelta(hours=number)
        reference, model = f"run-{number:03}", models[number % 2]
        make_goal(project, reference, language_model=model, at=at, status="completed")
        post_runs(project, 1, 0, at, correlation_id=reference, model=model.name)
    page = reader.open("/runs/?range=7d")
    expect(page.get_by_text("run-000")).to_be_visible()
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_text(f"run-{PAGE:03}")).to_be_visible()
    reader.open("/runs/?range=7d&q=model:haiku")
    expect(page.get_by_text("run-002")).to_be_visible()
    expect(page.get_by_text("run-001")).to_have_count(0)
    page.get_by_role("link", name="1 h", exact=True).click()
    expect(page.get_by_text("run-002")).to_have_count(0)
    expect(page.get_by_text("run-000")).to_be_visible()
    page.locator("#find").fill("run-044")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/run-044/")
    reader.check()

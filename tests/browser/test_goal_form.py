"""The form that submits a goal: who checks, and what belongs to it, on any screen."""

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from agents.goals.models import Goal
from diagnostics.accounts.models import Project
from tests.browser.conftest import Open
from tests.console import make_model

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PICTURES = os.environ.get("FORM_PICTURES")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1440, "light")])
def test_a_check_is_chosen_and_only_its_fields_are_shown(
    project: Project, open_reader: Open, settings: Any, width: int, scheme: str
) -> None:
    settings.FAILSOFT_CHECK_COMMANDS = {"tests": ["true"]}
    make_model(project)
    reader = open_reader(width, color_scheme=scheme)
    reader.sign_in()
    page = reader.open("/goals/new/")
    page.get_by_label("Goal", exact=True).fill("Say hello")
    page.get_by_text("Completion check and iterations").click()
    kind = page.get_by_label("Completion check")
    expect(page.get_by_label("Tool", exact=True)).to_be_hidden()
    kind.select_option("tool")
    expect(page.get_by_label("Tool", exact=True)).to_be_visible()
    expect(page.get_by_label("Command")).to_be_hidden()
    page.get_by_label("Arguments").fill("[1")
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("#id_check_tool_error")).to_contain_text("Choose the tool")
    expect(page.locator("#id_check_args_error")).to_be_visible()
    assert reader.axe_violations() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{width}-{scheme}.png", full_page=True)
    kind.select_option("command")
    page.get_by_label("Command").select_option("tests")
    page.get_by_label("Max iterations").fill("5")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/runs/*-*/")
    goal = Goal.objects.get()
    assert (goal.completion_check or {})["command"] == "tests"
    assert goal.max_iterations == 5
    reader.check()

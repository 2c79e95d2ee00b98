"""Actions in the browser: what was done, what failed, and taking it back."""

import pytest
from playwright.sync_api import expect

from agents.actions.models import Entry
from agents.goals.models import Goal
from tests.agents.conftest import Planner, work_off
from tests.browser.conftest import Open
from tests.failsoft.actions.calls import call, complete, create, update

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def acted(planner: Planner) -> Goal:
    """A goal of which two entries were created, and three things failed."""
    milk = {"content": "Buy milk " * 40, "category": "todo", "priority": 2}
    calls = [
        create(milk, {"content": "x" * 300, "category": "grocery"}),
        update({"status": "frozen"}),
        complete("fff"),
        call("create_entries", '{"entries": [' + "y" * 2_000),
    ]
    planner.will_say({"tool_calls": calls, "finish_reason": "tool_calls"})
    goal = planner.submit("Buy milk", "actions", toolset="entries", correlation_id="acted")
    work_off()
    return goal


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_goal_of_actions_is_readable_everywhere(
    acted: Goal, open_reader: Open, width: int, scheme: str
) -> None:
    reader = open_reader(width, color_scheme=scheme)
    reader.sign_in()
    page = reader.open("/runs/acted/")
    expect(page.locator("#actions")).to_contain_text("couldn't be processed")
    assert reader.axe_violations() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    reader.check()


def test_what_was_applied_is_taken_back_by_a_button(acted: Goal, open_reader: Open) -> None:
    reader = open_reader()
    reader.sign_in()
    page = reader.open("/runs/acted/")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#actions")).to_contain_text("undone")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    assert not Entry.objects.exists()
    reader.check()

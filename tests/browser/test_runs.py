"""Runs in the browser: by keyboard, without JavaScript, on a phone, with hostile names."""

from typing import Any

import pytest
from playwright.sync_api import expect

from diagnostics.accounts.models import Membership, Project
from plans.models.run import Run, RunStep
from plans.runs.running import execute_run
from plans.runs.submission import submit_run
from tests.browser.conftest import Open, Reader
from tests.browser.test_hostile_rows import PAYLOADS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def step(name: str, *after: str, tool: str = "echo", **args: Any) -> dict[str, Any]:
    call = {"name": tool, "args": args}
    return {"step_id": name, "dependencies": list(after), "tool": call}


@pytest.fixture
def run(project: Project) -> Run:
    """A step failed, one was skipped, and of one nobody knows the outcome."""
    steps = [
        step("fetch", url="https://example.org"),
        step("charge", "fetch", tool="fail", message="declined"),
        step("receipt", "charge"),
        step("mail", "fetch"),
    ]
    made = submit_run(project.pk, {"steps": steps}, "orders")
    execute_run(made.pk)
    RunStep.objects.filter(run=made, step_id="mail").update(
        ok=False, reason="unknown_outcome", error="Nobody knows.", output=None
    )
    return made


@pytest.mark.parametrize(
    ("width", "scheme"), [(360, "dark"), (360, "light"), (1440, "dark"), (1440, "light")]
)
def test_pages_of_runs_and_tools_are_readable_everywhere(
    run: Run, open_reader: Open, width: int, scheme: str
) -> None:
    Membership.objects.update(role="admin")
    reader = open_reader(width, color_scheme=scheme)
    reader.sign_in()
    for path in ("/plan-runs/", f"/plan-runs/{run.pk}/", f"/plan-runs/{run.pk}/?step=0", "/tools/"):
        page = reader.open(path)
        assert reader.axe_violations() == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    reader.check()


def test_a_run_is_read_and_decided_by_keyboard_alone(run: Run, reader: Reader) -> None:
    page = reader.open(f"/plan-runs/{run.pk}/")
    page.get_by_role("link", name="receipt (skipped)").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/?step=2#step")
    expect(page.locator("#step")).to_contain_text("Root cause")
    page.locator("#step").get_by_role("link", name="charge").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#step")).to_contain_text("declined")
    box = page.get_by_role("checkbox", name="mail")
    box.focus()
    expect(box).to_be_checked()
    for _ in range(5):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Mark as done":
            break
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("1 step decided")
    reader.check()


def test_a_run_is_repeated_and_followed(run: Run, reader: Reader) -> None:
    page = reader.open(f"/plan-runs/{run.pk}/?step=1")
    page.get_by_role("button", name="Run again from here").click()
    expect(page.locator("h1")).to_contain_text("Queued")
    made = Run.objects.get(rerun_of=run)
    execute_run(made.pk)
    expect(page.locator("h1")).to_contain_text("Failed: 2 of 4 steps ok")
    expect(page.locator("[data-poll]")).to_have_count(0)
    reader.check()


def test_a_run_works_without_javascript(run: Run, open_reader: Open) -> None:
    reader = open_reader(java_script_enabled=False)
    reader.sign_in()
    page = reader.open("/plan-runs/")
    page.get_by_label("Status").select_option("FAILED")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="orders").click()
    expect(page.locator("h1")).to_contain_text("1 step needing a decision")
    page.get_by_role("link", name="problems 3").click()
    expect(page.locator("#steps tbody tr")).to_have_count(3)
    page.get_by_role("button", name="Mark as not done").click()
    expect(page.locator("main")).to_contain_text("1 step decided")
    page.get_by_role("button", name="Cancel plan run").click()
    expect(page.locator("main")).to_contain_text("cancelling")


def test_s13_hostile_names_in_every_field_of_a_run_are_not_executed(
    project: Project, reader: Reader
) -> None:
    Membership.objects.update(role="admin")
    steps = [step("x", tool="x", x=text) for text in PAYLOADS]
    for number, (made, text) in enumerate(zip(steps, PAYLOADS, strict=True)):
        made |= {"step_id": f"{number} {text}", "title": text, "tool": text}
        made["args"] = {text: text}
    run = submit_run(project.pk, {"steps": steps}, PAYLOADS[0])
    execute_run(run.pk)
    RunStep.objects.filter(run=run).update(error=PAYLOADS[1], resolved_by=PAYLOADS[2])
    Run.objects.filter(pk=run.pk).update(
        release=PAYLOADS[0],
        requested_by=PAYLOADS[2],
        contract_violations=[{"path": text, "message": text} for text in PAYLOADS[:9]],
    )
    for path in ("/plan-runs/", *(f"/plan-runs/{run.pk}/?step={at}" for at in range(0, 40, 4))):
        page = reader.open(path)
        assert page.evaluate("typeof pwned") == "undefined", path
    reader.check()

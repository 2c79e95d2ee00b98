"""Failures in the browser: by keyboard, without JavaScript, on a phone; the lab."""

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from diagnostics.accounts.models import Project
from diagnostics.failures.models import FailureGroup
from diagnostics.ingest.recording import record
from diagnostics.store import aggregation
from failsoft.events import PostedEvent as WireEvent
from tests.browser.conftest import Open, Reader
from tests.console import post_and_fold, recently
from tests.diagnostics.builders import wire_event

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
KINDS = ("truncated", "refusal", "not_json", "empty_output")


@pytest.fixture
def failures(incident: Project) -> list[FailureGroup]:
    """Four kinds of failure beside the calls of an incident, latest first."""
    at = recently()
    error = {"path": "", "message": "ends here", "line": 2, "column": 3}
    events = [
        wire_event(
            occurred_at=(at - timedelta(minutes=place, seconds=number)).isoformat(),
            parse_error_type=kind,
            raw_output_preview='{"steps": [\n  {"step_id": 1,',
            validation_errors=[error],
            provider="provider",
            model="claude-haiku-4" if number < 6 else "gpt-5",
            environment="prod",
            correlation_id=f"{kind}-{number}",
        )
        for place, kind in enumerate(KINDS)
        for number in range(8)
    ]
    post_and_fold(incident, *events)
    found = FailureGroup.objects.filter(project=incident, error_type__in=KINDS)
    return list(found.order_by("-last_seen"))


def focused(page: Page) -> str:
    text: str = page.evaluate("document.activeElement.textContent")
    return text.strip()


@pytest.mark.parametrize(
    ("width", "scheme"), [(360, "dark"), (1440, "light")], ids=["phone", "desk"]
)
def test_pages_are_readable_everywhere(
    failures: list[FailureGroup], open_reader: Open, width: int, scheme: str
) -> None:
    reader = open_reader(width, color_scheme=scheme)
    reader.sign_in()
    one = f"/failures/{failures[0].pk}/"
    tabs = [f"{one}?tab={name}" for name in ("runs", "history", "why")]
    for path in ("/failures/", one, *tabs, f"{one}replay/", "/lab/"):
        page = reader.open(path)
        assert reader.axe_violations() == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    reader.check()


def test_a_long_line_of_an_answer_is_whole_on_paper(project: Project, reader: Reader) -> None:
    text = '{"steps": "' + "word " * 60
    long = wire_event(occurred_at=recently().isoformat(), raw_output_preview=text)
    post_and_fold(project, long)
    page = reader.open(f"/failures/{FailureGroup.objects.get(project=project).pk}/")
    page.set_viewport_size({"width": 720, "height": 900})
    page.emulate_media(media="print")
    preview = page.locator(".preview").first
    expect(preview).to_contain_text("word word")
    assert preview.evaluate("one => one.scrollWidth - one.clientWidth") == 0


def test_the_list_is_worked_by_keyboard_alone(failures: list[FailureGroup], reader: Reader) -> None:
    page = reader.open("/failures/?sort=latest&state=all")
    press = page.keyboard.press
    press("j")
    assert focused(page) == "Truncated · next_step"
    press("j")
    assert focused(page) == "Refusal · next_step"
    press("ArrowDown")
    assert focused(page) == "Not JSON · next_step"
    press("k")
    press("x")
    press("j")
    press("x")
    expect(page.get_by_text("2 selected")).to_be_visible()
    press("e")
    expect(page.locator("main")).to_contain_text("2 failures resolved")
    # One goes on where the key was pressed.
    assert focused(page) == "Not JSON · next_step"
    press("k")
    press("k")
    press("m")
    expect(page.locator("main")).to_contain_text("muted for a day")
    states = dict(FailureGroup.objects.values_list("error_type", "state"))
    assert states == {
        **states,
        "truncated": "muted",
        "refusal": "resolved",
        "not_json": "resolved",
        "empty_output": "new",
    }
    press("Enter")
    page.wait_for_url(f"**/failures/{failures[0].pk}/**")
    # As many of each kind: the newest group is the first in the list of what rises.
    by_rise = sorted(failures, key=lambda group: -group.pk)
    place = by_rise.index(failures[0])
    is_last = place + 1 == len(by_rise)
    press("[" if is_last else "]")
    page.wait_for_url(f"**/failures/{by_rise[place + (-1 if is_last else 1)].pk}/**")
    reader.check()


@pytest.mark.parametrize("width", [390, 1440])
def test_a_message_beside_a_long_pointer_is_read_in_lines(
    incident: Project, open_reader: Open, width: int
) -> None:
    pointer = "/steps/0/tool/args/" + "averylongname" * 8
    error = {"path": pointer, "message": "Field required", "line": 122, "column": 40}
    event = wire_event(
        occurred_at=recently().isoformat(),
        parse_error_type="schema_invalid",
        validation_errors=[error],
    )
    record(incident.pk, [WireEvent.model_validate(event)])
    aggregation.fold()
    made = FailureGroup.objects.get(project=incident, error_type="schema_invalid")
    reader = open_reader(width)
    reader.sign_in()
    page = reader.open(f"/failures/{made.pk}/")
    box = page.locator(".faults .wrap").bounding_box()
    assert box is not None
    assert box["width"] >= 80
    assert box["height"] < 60
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_dialog_tells_the_keys_and_switches_them_off(
    failures: list[FailureGroup], reader: Reader
) -> None:
    page = reader.open("/failures/")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    assert reader.axe_violations() == []
    dialog.get_by_label("Single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("e")
    page.keyboard.press("j")
    assert page.locator("tr.current").count() == 0
    page.get_by_role("button", name="Shortcuts").click()
    dialog.get_by_label("Single-key shortcuts").check()
    dialog.get_by_role("button", name="Close").click()
    page.locator("body").press("j")
    assert page.locator("tr.current").count() == 1
    reader.check()


def test_everything_works_without_javascript(
    failures: list[FailureGroup], open_reader: Open
) -> None:
    reader = open_reader(java_script_enabled=False)
    reader.sign_in()
    page = reader.open("/failures/")
    page.get_by_label("Select Refusal").check()
    page.get_by_label("Select Not JSON").check()
    page.get_by_placeholder("release").fill("r-7")
    page.get_by_role("button", name="Resolved in release").click()
    expect(page.locator("main")).to_contain_text("resolved in r-7")
    page.get_by_role("navigation", name="State").get_by_text("resolved").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_role("link", name="Refusal").click()
    page.get_by_role("link", name="History and comments").click()
    page.get_by_role("textbox", name="Comment").fill("Known since Monday.")
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator("#tabs")).to_contain_text("Known since Monday.")


def test_the_lab_shows_repairs_and_compares(failures: list[FailureGroup], reader: Reader) -> None:
    page = reader.open(f"/failures/{failures[0].pk}/")
    page.get_by_role("link", name="Open in Parse lab").click()
    expect(page.locator("#readings")).to_contain_text("truncated")
    page.get_by_label("Model output").fill("Sure! {'a': 1,}")
    page.get_by_label("Schema", exact=True).first.select_option("none")
    page.get_by_label("Compare with other settings").check()
    page.get_by_role("button", name="Parse").click()
    first, second = page.get_by_role("region", name="Result").all()
    expect(first).to_contain_text("trailing comma")
    expect(second).to_contain_text("strict JSON ends here")
    assert reader.axe_violations() == []
    reader.check()

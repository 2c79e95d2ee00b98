"""Forms as they are sent: by a second click, and from two tabs."""

import pytest
from playwright.sync_api import Route, expect

from diagnostics.accounts.models import Membership, Project
from diagnostics.alerting.notification_models import Channel
from diagnostics.alerting.rule_models import Silence
from tests.browser.conftest import Reader
from tests.diagnostics.alerting.notifications.building import make_channel

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CLICK_TWICE = """() => {
  const button = document.querySelector("form[action$='/silences/new/'] [type=submit]");
  for (const delay of [0, 200]) setTimeout(() => button.click(), delay);
}"""


def test_a_second_click_sends_nothing_again(project: Project, reader: Reader) -> None:
    page, held = reader.open("/alerts/silences/?model=gpt-5"), list[Route]()
    page.route("**/alerts/silences/new/", lambda route: held.append(route))
    page.get_by_label("Duration (h)").fill("1")
    # A hand is not held up by a navigation that has begun.
    page.evaluate(CLICK_TWICE)
    page.wait_for_timeout(600)
    assert len(held) == 1
    held[0].continue_()
    expect(page.get_by_text("Silenced: notifications are muted")).to_be_visible()
    assert Silence.objects.count() == 1
    reader.check()


def test_a_page_that_comes_back_from_the_history_can_be_sent_again(
    project: Project, reader: Reader
) -> None:
    page = reader.open("/alerts/silences/?model=gpt-5")
    for _ in range(2):
        page.get_by_label("Duration (h)").fill("1")
        page.get_by_role("button", name="Silence").click()
        expect(page.get_by_text("Silenced: notifications are muted")).to_be_visible()
        page.go_back()
    assert Silence.objects.count() == 2


def test_two_tabs_edit_a_channel_and_the_second_is_told(project: Project, reader: Reader) -> None:
    Membership.objects.update(role=Membership.Role.ADMIN)
    address = f"/alerts/channels/{make_channel(project).pk}/"
    first, second = reader.open(address), reader.context.new_page()
    second.goto(reader.base_url + address)
    for page, name in ((first, "mine"), (second, "theirs")):
        page.get_by_text("Settings…").click()
        page.get_by_label("Name").fill(name)
        page.get_by_role("button", name="Save").click()
    expect(second.get_by_role("alert").first).to_contain_text("Saving again replaces: Name.")
    assert Channel.objects.get().name == "mine"
    second.get_by_role("button", name="Save").click()
    expect(second.locator("h1")).to_have_text("theirs")

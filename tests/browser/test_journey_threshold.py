"""A threshold for one model, from its page: a back-test, and it fires."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from diagnostics import clock
from diagnostics.accounts.models import Membership, Project
from diagnostics.alerting.evaluator import evaluate_project
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.store.aggregation import fold
from diagnostics.store.windows import floor
from tests.browser.conftest import Open
from tests.diagnostics.alert_calls import MINUTE, count_calls
from tests.diagnostics.alerting.notifications.building import make_channel

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_a_threshold_for_one_model_is_tried_saved_and_fires(
    project: Project, open_reader: Open, width: int, scheme: str
) -> None:
    Membership.objects.update(role=Membership.Role.ADMIN)
    make_channel(project, name="Ops")
    begin = floor(clock.now(), timedelta(hours=1)) - timedelta(days=2)
    count_calls(project, begin, [0.02] * 24 + [0.4] * 6 + [0.02] * 17, 60, "m-1", 60 * MINUTE)
    count_calls(project, begin, [0.02] * 47, 60, "m-10", 60 * MINUTE)
    fold()
    reader = open_reader(width, color_scheme=scheme)
    reader.sign_in()
    page = reader.open("/models/acme/m-1/")
    page.get_by_role("link", name="New rule for this model").click()
    page.get_by_label("Name").fill("m-1 above 15 %")
    page.get_by_label("Signal").select_option("call_failure_ratio")
    page.get_by_label("Limit").fill("15")
    page.get_by_role("checkbox", name="Ops").check()
    # Beside it, the card of the last test has a button of this name until it is loaded.
    page.locator("button[name=try]").click()
    expect(page.get_by_text("Would have fired 1 time")).to_be_visible()
    assert page.evaluate(WIDER) <= 0
    assert reader.axe_violations() == []
    page.get_by_role("button", name="Save").click()
    rule = page.locator("#thresholds").get_by_role("link", name="m-1 above 15 %")
    expect(rule).to_be_visible()
    assert AlertRule.objects.get(standard=None).filter == "provider=acme&model=m-1"
    now = floor(clock.now(), MINUTE)
    count_calls(project, now - 20 * MINUTE, [0.6] * 20, 5, "m-1")
    evaluate_project(project.pk, now)
    page = reader.open("/models/acme/m-1/")
    expect(page.locator("#thresholds li", has_text="above 15")).to_contain_text("firing")
    page = reader.open("/models/")
    expect(page.get_by_role("row", name="m-1 acme").first).to_contain_text("firing")
    reader.check()

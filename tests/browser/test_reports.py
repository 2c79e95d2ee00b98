"""Reports in a real browser: the pages, and the mail as a phone and a desk show it."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.outbound.mail import render_html
from diagnostics.reports.archive import archive_last_days
from diagnostics.reports.rendering import Letter
from diagnostics.store.aggregation import fold
from tests.browser.conftest import Open, Reader
from tests.diagnostics.reports.builders import make_document, make_model
from tests.diagnostics.reports.conftest import make_subscription
from tests.diagnostics.reports.test_mail import PERSONAL

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(
    ("width", "scheme"), [(1440, "light"), (360, "dark")], ids=["desk", "phone"]
)
def test_the_pages_are_readable_at_every_width(
    open_reader: Open, incident: Project, person: User, width: int, scheme: str
) -> None:
    while fold():
        pass
    subscription = make_subscription(incident, person, due=False)
    report = archive_last_days(incident, clock.now())
    reader = open_reader(width, color_scheme=scheme)
    reader.sign_in()
    own = f"/reports/subscriptions/{subscription.pk}/"
    for path in ("/reports/", "/reports/new/", f"/reports/{report.pk}/", own):
        page = reader.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert reader.axe_violations() == [], path
    page = reader.open(f"{own}preview/")
    expect(page.frame_locator("iframe").get_by_text("Models, worst first")).to_be_visible()
    reader.check()


def test_a_person_subscribes_and_pauses(reader: Reader) -> None:
    page = reader.open("/reports/")
    page.get_by_role("link", name="Create weekly report").click()
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("every Monday at 08:00, Europe/Berlin").first).to_be_visible()
    page.get_by_role("button", name="for a week").click()
    expect(page.get_by_text("paused", exact=True)).to_be_visible()
    reader.check()


@pytest.mark.parametrize("width", [360, 800])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_mail_fits_and_can_be_read(open_reader: Open, width: int, scheme: str) -> None:
    models = [make_model("provider/" + "long-name-" * 5 + str(at), 0.4) for at in range(9)]
    context = {
        "letter": Letter(make_document(models=models)),
        "personal": PERSONAL,
        "is_page": True,
    }
    reader = open_reader(width, color_scheme=scheme)
    reader.page.set_content(render_html("report", context))
    wide = reader.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    contrast = [one for one in reader.axe_violations() if "contrast" in one]
    assert contrast == []

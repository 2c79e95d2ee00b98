"""The ingestion page in a real browser."""

import pytest
from playwright.sync_api import expect

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.rejects import allowance, note_refusals, refuse_body
from tests.browser.conftest import Open, Reader

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_an_operator_sends_a_test_event_and_sees_its_source(reader: Reader) -> None:
    page = reader.open("/ingest/")
    expect(page.locator("h1")).to_contain_text("Data")
    page.get_by_role("button", name="Send test event").click()
    expect(page.get_by_text("Test event created")).to_be_visible()
    expect(page.get_by_role("row", name="sending console")).to_be_visible()
    reader.check()


@pytest.mark.parametrize("width", [1440, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_readable_at_every_width(
    open_reader: Open, incident: Project, width: int, scheme: str
) -> None:
    allowance.clear()
    key = issue_key(incident, "support bot", [Scope.INGEST]).row
    refused = refuse_body(b'[{"event_id": 7, "nam', "not_json", "EOF while parsing")
    note_refusals(key, "/api/v1/events", 400, [refused])
    reader = open_reader(width, color_scheme=scheme)
    reader.sign_in()
    page = reader.open("/ingest/")
    page.get_by_text("Request body").click()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    assert reader.axe_violations() == []
    reader.check()

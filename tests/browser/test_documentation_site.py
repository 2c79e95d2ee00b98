"""The documentation site under the console's policy: nothing inline, nothing from elsewhere."""

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from django.core.wsgi import get_wsgi_application
from django.test import override_settings
from playwright.sync_api import Browser

from tests.browser.conftest import WATCH_POLICY, Reader

TOP = Path(__file__).resolve().parents[2]
DOORS = ["Start", "How to", "Reference", "Explanation", "Working on Failsoft"]

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]


class Silent(WSGIRequestHandler):
    """Answers without a line for each request."""

    def log_message(self, *words: Any) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the product with its documentation, and return where."""
    subprocess.run(["make", "--no-print-directory", "site"], cwd=TOP, check=True)
    with override_settings(WHITENOISE_ROOT=TOP / "site"):
        application = get_wsgi_application()
    with make_server("127.0.0.1", 0, application, handler_class=Silent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(params=["light", "dark"])
def reader(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Reader]:
    """A person who reads the documentation, by day or by night, without an account."""
    context = browser.new_context(color_scheme=request.param)
    context.add_init_script(WATCH_POLICY)
    made = Reader(context, context.new_page(), address)
    made.watch()
    yield made
    made.check()
    context.close()


def test_every_page_of_the_navigation_opens_without_a_complaint(reader: Reader) -> None:
    asked: set[str] = set()
    reader.page.on("request", lambda request: asked.add(request.url))
    page = reader.open("/docs/")
    assert page.locator(".sidebar-tree .caption").all_text_contents() == DOORS
    links = page.locator(".sidebar-tree a").evaluate_all("all => all.map(one => one.href)")
    assert len(links) > 40
    for link in links:
        answer = page.goto(link)
        assert answer is not None
        assert answer.ok, link
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert page.locator("h1").count() == 1, link
        reader.check()
    assert {url for url in asked if not url.startswith((reader.base_url, "data:"))} == set()


def test_the_search_finds_a_page_by_a_word_in_it(reader: Reader) -> None:
    page = reader.open("/docs/")
    page.fill(".sidebar-search", "quota")
    page.press(".sidebar-search", "Enter")
    page.wait_for_selector("ul.search a[href*='ingestion']")


def test_a_page_is_readable_for_everybody(reader: Reader) -> None:
    reader.open("/docs/alerts/")
    assert reader.axe_violations() == []

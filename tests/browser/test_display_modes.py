"""What a reader has set for all sites: larger text, more contrast, the system's own colours."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from agents.demo.loading import load
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.store.aggregation import fold
from tests.browser.conftest import Open, Reader
from tests.console import post_runs, recently
from tests.console_pages import console_pages

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
USUAL_PX = 16
COLOUR = "(element) => getComputedStyle(element).color"


def write_in(page: Page, pixels: int) -> None:
    """Choose the size of text, as the settings of the browser do."""
    session = page.context.new_cdp_session(page)
    session.send("Page.enable")
    session.send("Page.setFontSizes", {"fontSizes": {"standard": pixels}})


@pytest.mark.parametrize(("width", "pixels"), [(390, 20), (640, 32), (1200, 32)])
def test_larger_text_is_written_so_and_fits(
    project: Project, person: User, open_reader: Open, width: int, pixels: int
) -> None:
    load(project, clock.now(), volume=0.05)
    client = Client()
    client.force_login(person)
    reader = open_reader(width)
    reader.sign_in()
    write_in(reader.page, pixels)
    wide = {}
    for path in console_pages(client, project):
        page = reader.open(path)
        size = page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")
        assert size == 14 * pixels / USUAL_PX
        if (found := page.evaluate("document.documentElement.scrollWidth")) > width:
            wide[path] = found
    assert wide == {}


def test_what_is_chosen_keeps_a_ground_of_its_own_in_the_colours_of_the_system(
    project: Project, open_reader: Open
) -> None:
    reader = open_reader(forced_colors="active")
    reader.sign_in()
    page = reader.open("/runs/")
    kept = "(element) => getComputedStyle(element).forcedColorAdjust"
    for chosen in (".segments [aria-current]", ".bar nav > [aria-current]"):
        assert page.locator(chosen).first.evaluate(kept) == "none"
    assert page.locator(".segments a:not([aria-current])").first.evaluate(kept) == "auto"


def test_buttons_are_not_printed(project: Project, reader: Reader) -> None:
    post_runs(project, 40, 4, recently(), model="a-model")
    fold()
    page = reader.open("/models/fake/a-model/")
    page.emulate_media(media="print")
    expect(page.locator(".curve").first).to_be_visible()
    expect(page.locator("[data-zoom], .readout").first).to_be_hidden()


def test_more_contrast_draws_lines_and_small_print_darker(
    project: Project, open_reader: Open
) -> None:
    seen = []
    for contrast in ("no-preference", "more"):
        reader = open_reader(contrast=contrast)
        reader.sign_in()
        page = reader.open("/runs/")
        seen.append(page.locator(".dim").first.evaluate(COLOUR))
    assert _light(seen[1]) < _light(seen[0])


def _light(colour: str) -> int:
    """Return the sum of the three parts of `rgb(1, 2, 3)`."""
    return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))

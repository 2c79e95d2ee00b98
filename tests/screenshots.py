"""`make screenshots`: pictures of the console for the documentation, from the demo.

    python -m tests.screenshots [--all DIR [--project demo|empty|large]]

Writes docs/screenshots/; with --all every page, light and dark, wide and narrow, into a
folder, for looking at: of the demo, of a project without data or of a large one.
"""

import argparse
import logging
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from django.urls import reverse
from playwright.sync_api import Browser, sync_playwright

import bench  # noqa: F401 - sets Django up
from agents.demo.loading import load
from agents.goals.models import Goal
from bench.pages.serving import Served, serving
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.failures.models import FailureGroup
from tests.browser.conftest import ARGUMENTS
from tests.console_pages import console_pages
from tests.large_project import fill_large

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "screenshots"
WIDE, NARROW = 1440, 390
# Small enough to read in a column of text and to keep in a repository.
PICTURE_WIDTH, PICTURE_HEIGHT = 1280, 800


def _fill_demo(project: Project) -> None:
    Project.objects.filter(pk=project.pk).update(name="Support planner")
    load(project, clock.now())


FILLINGS: Mapping[str, Callable[[Project], object]] = {
    "demo": _fill_demo,
    "empty": lambda project: None,
    "large": fill_large,
}


def main() -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, default=None, metavar="DIR")
    parser.add_argument("--project", choices=FILLINGS, default="demo")
    asked = parser.parse_args()
    logging.getLogger("django.request").setLevel(logging.CRITICAL)
    fill = FILLINGS[asked.project]
    with serving(lambda project, _: fill(project), None, is_kept=False) as served:
        # Asked before the browser comes: it brings a loop that queries may not run in.
        pages = (
            _named(console_pages(served.client, served.project))
            if asked.all
            else _shown(served.project)
        )
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=ARGUMENTS
            )
            if asked.all:
                _take(browser, served, pages, asked.all, (WIDE, NARROW), whole=True)
            else:
                _take(browser, served, pages, FOLDER, (PICTURE_WIDTH,), whole=False)
            browser.close()
    return 0


def _shown(project: Project) -> dict[str, str]:
    """Name what the documentation shows: the demo's incident on four pages."""
    goal = Goal.objects.filter(project=project, outcome="repaired").latest("pk")
    cut_off = FailureGroup.objects.filter(project=project, error_type="truncated")
    return {
        "now": "/",
        "model": reverse("model", args=("anthropic", "claude-haiku-4")),
        "failure": reverse("failure", args=(cut_off.latest("seen").pk,)),
        "goal": reverse("goal", args=(goal.correlation_id,)),
    }


def _named(paths: Iterable[str]) -> dict[str, str]:
    return {path.strip("/").replace("/", "-")[:60] or "now": path for path in paths}


def _take(
    browser: Browser,
    served: Served,
    pages: dict[str, str],
    folder: Path,
    widths: Sequence[int],
    *,
    whole: bool,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    address = f"http://127.0.0.1:{served.port}"
    name, value = served.cookie
    for scheme in ("light", "dark"):
        for width in widths:
            context = browser.new_context(
                viewport={"width": width, "height": PICTURE_HEIGHT},
                color_scheme="dark" if scheme == "dark" else "light",
                timezone_id="UTC",
                locale="en-GB",
            )
            context.add_cookies([{"name": name, "value": value, "url": address}])
            page = context.new_page()
            for title, path in pages.items():
                page.goto(address + path)
                page.get_by_text("Judging these calls").wait_for(state="detached")
                mark = ("-dark" if scheme == "dark" else "") + (
                    "-narrow" if width == NARROW else ""
                )
                page.screenshot(path=folder / f"{title}{mark}.png", full_page=whole)
                sys.stdout.write(f"{title}{mark}\n")
            context.close()


if __name__ == "__main__":
    sys.exit(main())

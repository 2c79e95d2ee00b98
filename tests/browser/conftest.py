"""A browser in front of a live server, and a record of everything it complains about."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.store.aggregation import fold
from diagnostics.store.partitions import ensure_partitions
from tests.agents.conftest import planner as planner
from tests.agents.conftest import project as project
from tests.console import make_member, post_runs
from tests.kept_threads import end_kept_threads

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PASSWORD = "correct horse " + "battery"
WATCH_POLICY = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Give Debian's Chromium; without one the test is skipped."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    # Playwright runs an event loop in this thread; our own queries do not wait on it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(autouse=True)
def _no_kept_threads() -> Iterator[None]:
    """Let the threads of the runners go: their connections keep a database in use."""
    yield
    end_kept_threads()


@dataclass
class Reader:
    """A person in front of the browser; `complaints` is what the browser reported."""

    context: BrowserContext
    page: Page
    base_url: str
    complaints: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Write down what the browser complains about from now on."""

        def hear(message: ConsoleMessage) -> None:
            if message.type in {"error", "warning"}:
                self.complaints.append(message.text)

        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", hear)

    def open(self, path: str) -> Page:
        """Go to a page and wait until it is there."""
        self.page.goto(self.base_url + path)
        return self.page

    def sign_in(self, name: str = "ann") -> None:
        """Sign in as a person does."""
        self.open("/accounts/login/")
        self.page.fill("[name=login]", name)
        self.page.fill("[name=password]", PASSWORD)
        self.page.press("[name=password]", "Enter")
        self.page.wait_for_url(self.base_url + "/")

    def axe_violations(self) -> list[str]:
        """Ask axe about the page as it stands."""
        found = Axe().run(self.page).response["violations"]
        return [f"{item['id']}: {node['html'][:120]}" for item in found for node in item["nodes"]]

    def check(self) -> None:
        """Fail with everything that the browser complained about."""
        policy = self.page.evaluate("window.violations || []")
        assert self.complaints + policy == []


Open = Callable[..., Reader]


@pytest.fixture
def person(project: Project) -> User:
    """Give a member with a password."""
    user = make_member(project)
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def open_reader(browser: Browser, live_server: LiveServer, person: User) -> Iterator[Open]:
    """Give readers with a window of their own."""
    contexts = []

    def open_one(width: int = 1440, **options: Any) -> Reader:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            **{"timezone_id": "Europe/Oslo", "locale": "en-GB", **options},
        )
        contexts.append(context)
        context.set_default_timeout(10_000)
        context.add_init_script(WATCH_POLICY)
        reader = Reader(context, context.new_page(), live_server.url)
        reader.watch()
        return reader

    yield open_one
    for context in contexts:
        context.close()


@pytest.fixture
def reader(open_reader: Open) -> Reader:
    """Give a signed-in reader at a desk."""
    made = open_reader()
    made.sign_in()
    return made


@pytest.fixture
def incident(project: Project) -> Project:
    """A calm week, then six hours in which one model of three degrades."""
    now = clock.now()
    first, last = now - timedelta(days=3), now + timedelta(days=1)
    ensure_partitions(first.date(), last.date())
    for model, bad in (("claude-haiku-4", 12), ("gpt-5", 0), ("mistral-large-3", 1)):
        series = {"provider": "provider", "model": model, "environment": "prod"}
        post_runs(project, 190, 8, now - timedelta(days=2), **series)
        for hour in range(6):
            at = now - timedelta(hours=hour, minutes=10)
            post_runs(project, 24 - bad, bad, at, **series)
    fold()
    return project

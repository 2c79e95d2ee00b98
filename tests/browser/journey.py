"""A person on a journey: what is clicked is counted against a budget that stands here."""

from dataclasses import dataclass

from playwright.sync_api import Locator, Page

BUDGETS = {
    "a colleague, a key and the first event": 9,
    "what the new prompt version broke": 3,
    "the degraded runs of a week as a file": 3,
    "the one bad model of thirty": 1,
    "the failures of a model named right to left": 2,
    "an incident on paper": 0,
    "a page that keeps still": 0,
    "a filter on a slow line": 2,
    "the times of a colleague elsewhere": 3,
    "a viewer calls an operator": 1,
    "an operator takes an incident": 1,
    "an incident by names alone": 2,
}
"""Clicks and choices at most; typing and Enter are none, nor is opening an address."""


@dataclass
class Journey:
    """Clicks on a page; fails at the first one beyond its budget."""

    name: str
    page: Page
    clicks: int = 0

    def click(self, place: Locator) -> None:
        """Click, and count it."""
        self._count()
        place.click()

    def choose(self, place: Locator, label: str) -> None:
        """Choose from a list, and count it."""
        self._count()
        place.select_option(label=label)

    def _count(self) -> None:
        self.clicks += 1
        assert self.clicks <= BUDGETS[self.name], f"{self.name}: more than {BUDGETS[self.name]}"

"""A client of the product's REST API that sends again until it is answered."""

import json
import time
from typing import Any

from tests.faults.fleet import Fleet
from tests.security.web import Web

ANSWERED_SECONDS = 120
KEYS = """
import sys, django; django.setup()
from agents.llm.models import LanguageModel, Provider
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
for slug in ("soak", "outside"):
    project = Project.objects.create(slug=slug, name=slug)
    print(issue_key(project, slug, list(Scope)).text)
project = Project.objects.get(slug="soak")
provider = Provider.objects.create(
    project=project, name="stub", adapter="openai", base_url=sys.argv[1])
LanguageModel.objects.create(
    project=project, provider=provider, name="stub-1", is_default=True,
    attempt_timeout_seconds=3)
"""


def make_keys(fleet: Fleet, planner_url: str) -> tuple[str, str]:
    """Make the project of the work, with the planner, and one of outside events."""
    work, events = fleet.call(KEYS, planner_url).split()
    return work, events


class Client:
    """One key's way to the web server; `refused` are answers but 2xx, 429, 503, silence."""

    def __init__(self, web: Web, key: str) -> None:
        self.web = web
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.refused: list[tuple[int, bytes]] = []

    def post_once(self, path: str, body: object, **headers: str) -> Any | None:
        """Send; None when it was not acknowledged. Other answers than expected are noted."""
        sent = json.dumps(body).encode()
        code, answer = self.web.ask("POST", path, sent, self.headers | headers)
        if 200 <= code < 300:
            return json.loads(answer)
        if code not in (0, 429, 503):
            self.refused.append((code, answer[:300]))
        return None

    def post(self, path: str, body: object, **headers: str) -> Any:
        """Send until acknowledged."""
        deadline = time.monotonic() + ANSWERED_SECONDS
        while time.monotonic() < deadline:
            told = self.post_once(path, body, **headers)
            if told is not None:
                return told
            time.sleep(0.2)
        raise AssertionError(f"{path} is not answered: {self.refused[-1:]}")

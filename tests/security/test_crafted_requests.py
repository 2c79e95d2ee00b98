"""Crafted cursors, ids and parameters: refused or passed over, never a 500.

A seeded generator: `FUZZ_ROUNDS=20` tries twenty times as much with other seeds.
"""

import json
import os
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client

from diagnostics.accounts import authentication
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from tests.console import Role, make_goal, make_member
from tests.diagnostics.builders import wire_event
from tests.security.addresses import Address, all_addresses
from tests.security.foreign_rows import FIXED, first_of, model_of

pytestmark = pytest.mark.django_db
ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "1"))
NOT_OURS = ("admin/", "accounts/", "healthz", "readyz")
PROGRAMS = ("api/v1/", "v1/", "mcp", "metrics")
LISTS = (
    "deploys", "entries", "events", "events?kind=not_json", "events?q=word", "failures",
    "goals", "incidents", "rejects", "runs", "runs?q=word",
)  # fmt: skip
CURSOR = "the cursor is none that was given out"


def encode(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


PLACES = (
    "2026-11-22T19:00:00+23:59", "2026-11-22T19:00:00-23:59", "2026-11-22T19:00:00",
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999+00:00", "2026-W47-7",
    "1", "-1", "9" * 18, "9" * 5000, "NaN", "", "\0", "\N{SNOWMAN}",
)  # fmt: skip
KEYS = (
    "1", "-1", "0", str(2**63 - 1), str(2**63), "9" * 40, "1e5", "1_0", "\u0661", "", "\0",
    "019aa0b2-5d4e-7a31-9a3c-0d6f8c1d2e4a", "g" * 36, "{" + "0" * 32 + "}", "a|b|c",
)  # fmt: skip
CURSORS = [encode(f"{place}|{key}") for place in PLACES for key in KEYS]
CURSORS += [*KEYS, "%%%", "=", "A" * 9_999, "\N{SNOWMAN}", "\ud800"]
TEXTS = (
    "", " ", "\0", "a\0b", "-", "~", "~00", "'", '"', "\\", "%", "%00", "%ff", "a:b:c", "(",
    "/", "//evil.example/", "..", "\N{SNOWMAN}", "\U0001f600" * 50, "x" * 3_000, "\r\nX: y",
    "\u202e", "\ud800", "[]", "{}", "null", "true", "-1", "0", "1", "1.5", "1e999", "NaN",
    str(2**31), str(2**63), "-" + "9" * 30, "9" * 5_000, "\u0661", "24h", "7d", "99999d",
    "custom", "UTC", "Europe/Berlin", "../../etc/passwd", "model:x", "-model:x", "model:",
    'q:"', "kind:truncated", "attempt:99999999999999999999", "outcome:x",
    *PLACES,
)  # fmt: skip
NAMES = (
    "range", "from", "to", "tz", "q", "env", "environment", "node", "provider", "model",
    "source", "prompt_version", "schema", "schema_version", "release", "served", "kind", "outcome",
    "reason", "attempt", "correlation_id", "name", "pointer", "code", "limit", "cursor",
    "format", "state", "status", "severity", "cause", "version", "category", "mode",
    "before", "after", "sort", "show", "tab", "view", "next", "page", "project", "group",
    "sample", "step", "event", "failure", "assignee", "actor", "action", "b", "b_from",
    "b_to", "depth", "wild", "matched", "verdict", "undecided", "runner", "ignore_schema",
    "ignore_detail", "reference", "query", "of", "hours", "until", "text", "id", "verb",
    "span", "more", "do", "where", "said", "url", "tool", "allowed", "language_model",
    "operation", "position", "raw", "pasted", "tool_calls", "cadence", "at", "zone",
    "filter", "target", "scopes", "days", "role", "email", "currency", "starts_at",
    "ends_at", "rule", "signal", "detector", "group_by", "limit_value",
)  # fmt: skip


class Asker:
    """An administrator's session and key, and what ended in a fault of ours."""

    def __init__(self, project: Project) -> None:
        key = issue_key(project, "k", list(Scope)).text
        self.project = project
        self.faults: list[str] = []
        self._person = Client(raise_request_exception=False)
        self._person.force_login(make_member(project, "eva", Role.ADMIN))
        self._key = Client(
            raise_request_exception=False, headers={"Authorization": f"Bearer {key}"}
        )

    def ask(self, method: str, path: str, query: str = "") -> Any:
        """Send a request; a status of 500 and more is noted."""
        client = self._key if path[1:].startswith(PROGRAMS) else self._person
        sent: dict[str, Any] = {}
        if method == "POST":
            sent = {"data": query, "content_type": "application/x-www-form-urlencoded"}
        elif query:
            path = f"{path}{'&' if '?' in path else '?'}{query}"
        answer: Any = client.generic(method, path, **sent)
        if answer.streaming:
            b"".join(answer.streaming_content)
        if answer.status_code >= 500 or connection.needs_rollback:
            self.faults.append(f"{answer.status_code} {method} {path[:200]} {query[:200]}")
            connection.set_rollback(False)
        return answer


@pytest.fixture
def asker() -> Iterator[Asker]:
    authentication.forget_all()
    project = Project.objects.create(slug="p", name="P")
    asker = Asker(project)
    events = [wire_event(), wire_event(), wire_event()]
    asker._key.post("/api/v1/events", events, content_type="application/json")
    make_goal(project)
    yield asker
    authentication.forget_all()


def write_pair(name: str, value: str) -> str:
    return f"{name}={quote(value, safe='', errors='surrogatepass')}"


def our_addresses() -> list[Address]:
    return [one for one in all_addresses() if not one.route.startswith(NOT_OURS)]


@pytest.mark.parametrize("listed", LISTS)
def test_a_crafted_cursor_is_refused_by_name(asker: Asker, listed: str) -> None:
    chosen = Random(listed).sample(CURSORS, min(40 * ROUNDS, len(CURSORS)))
    keys = ("1", "\0")
    for cursor in [*(encode(f"2026-11-22T19:00:00+23:59|{key}") for key in keys), *chosen]:
        answer = asker.ask("GET", f"/api/v1/{listed}", write_pair("cursor", cursor))
        assert answer.status_code in (200, 400), cursor
        if answer.status_code == 400:
            assert answer.json()["cursor"] == CURSOR
            assert answer.json()["detail"] == f"cursor: {CURSOR}"
    assert asker.faults == []


@pytest.mark.slow
def test_crafted_cursors_of_pages_are_passed_over_or_not_found(asker: Asker) -> None:
    random = Random("pages")
    pages = ("/failures/", "/reports/", "/runs/", "/live/", "/live/rows/", "/incidents/",
             f"/failures/{first_of(model_of('', 'group_id'), asker.project).pk}/")  # type: ignore[arg-type]  # fmt: skip
    for page in pages:
        for name in ("before", "after"):
            for cursor in random.sample(CURSORS, min(6 * ROUNDS, len(CURSORS))):
                asker.ask("GET", page, write_pair(name, cursor))
    asker.ask("GET", "/reports/", write_pair("before", encode(f"{PLACES[0]}|1")))
    assert asker.faults == []


@pytest.mark.slow
def test_crafted_ids_in_paths_are_not_found(asker: Asker) -> None:
    random = Random("ids")
    for address in our_addresses():
        method = "GET" if address.route.startswith(("api/", "v1/")) else "POST"
        for _ in range(2 * ROUNDS if address.names else 0):
            values = {name: random.choice((*KEYS, *TEXTS)) or "-" for name in address.names}
            path = write_path(address, values)
            asker.ask("GET", path)
            asker.ask(method, path)
    for path in ("/models/%00/x/", "/models/x/%00/", "/models/~00/x/", "/runs/%00/"):
        assert asker.ask("GET", path).status_code == 404
    assert asker.faults == []


def write_path(address: Address, values: dict[str, str]) -> str:
    path = address.route
    for name, value in values.items():
        written = quote(value, safe="", errors="surrogatepass")
        path = re.sub(rf"<(?:\w+:)?{name}>", lambda _, w=written: w, path)  # type: ignore[misc]
    return f"/{path}"


@pytest.mark.slow
def test_crafted_parameters_of_every_page_and_list_end_in_no_fault(asker: Asker) -> None:
    random = Random("parameters")
    for address in our_addresses():
        values = {
            name: str(first_of(model, asker.project).pk)
            if (model := model_of(address.route, name))
            else FIXED[name][0]
            for name in address.names
        }
        path = write_path(address, values)
        for _ in range(ROUNDS):
            chosen = random.sample(NAMES, random.randint(1, 8))
            pairs = [write_pair(name, random.choice((*TEXTS, *KEYS))) for name in chosen]
            asker.ask("GET", path, "&".join(pairs))
            if not path[1:].startswith(PROGRAMS):
                asker.ask("POST", path, "&".join(pairs))
    assert asker.faults == []


@pytest.mark.parametrize("path", ["api/v1/events", "api/v1/goals", "api/v1/failures"])
def test_bytes_that_are_no_utf_8_in_a_query_are_no_fault(asker: Asker, path: str) -> None:
    answer = asker.ask("GET", f"/{path}", "q=%ff%fe&%ff=1")
    assert answer.status_code == 400
    assert json.loads(answer.content)["code"]
    assert asker.faults == []

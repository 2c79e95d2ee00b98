"""Nothing unredacted is kept or shown: one door to the event tables, and canaries (X-17)."""

# ruff: noqa: F811 - fixtures of another folder
import ast
import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client

from diagnostics.models import Membership
from diagnostics.redaction.redacting import register_secret
from diagnostics.storage import folding
from tests.agents.conftest import (
    PLAN,
    Api,
    Planner,
    api,  # noqa: F401 - a fixture
    planner,  # noqa: F401 - a fixture
    project,  # noqa: F401 - a fixture
    tables_holding,
)
from tests.diagnostics.builders import wire_event
from tests.diagnostics.core.redaction.made_up import make
from tests.security.addresses import all_addresses

ROOT = Path(__file__).resolve().parents[2]
APPS = ("agents", "config", "diagnostics", "plans")
EVENT_TABLES = re.compile(
    r"(?:insert\s+into|update|copy|merge\s+into)\s+\"?"
    r"diagnostics_event(?:_payload|identity)?\b",
    re.IGNORECASE,
)
EVENT_MODELS = {"Event", "EventPayload", "EventIdentity"}
WRITES = {
    "bulk_create", "bulk_update", "create", "get_or_create", "save", "update",
    "update_or_create", "raw",
}  # fmt: skip
# The door itself; partitions move rows as they are, from one table to another.
MAY_WRITE = {
    "diagnostics/sql/record_events.sql",
    "diagnostics/sql/record_failures.sql",
    "diagnostics/storage/partitions.py",
}
TEMPLATES = (
    "sk-ant-api03-{alnum:60}", "sk-proj-{alnum:48}", "ghp_{alnum:36}", "AKIA{upper:16}",
    "AIza{alnum:35}", "xoxb-{digit:12}-{alnum:24}", "hf_a1B{alnum:31}", "npm_1a{alnum:34}",
    "glpat-{alnum:20}", "sk_live_{alnum:24}", "SG.1a{alnum:20}.{alnum:43}", "dop_v1_{hex:64}",
    "hvs.{alnum:24}", "lin_api_{alnum:40}", "pypi-AgEI{alnum:60}", "shpat_{hex:32}",
    "eyJhbGciOi{alnum:20}.eyJ{alnum:40}", "figd_{alnum:40}", "fs_{hex:12}_{alnum:43}",
    "k9{alnum:30}",
)  # fmt: skip


def sources() -> Iterator[tuple[str, str]]:
    """Give every file of the apps that may hold SQL or Python, but migrations."""
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix in {".py", ".sql"} and "/migrations/" not in name:
                yield name, path.read_text(encoding="utf-8")


def test_s0_45_no_other_sql_writes_to_the_event_tables() -> None:
    writers = {name for name, text in sources() if EVENT_TABLES.search(text)}
    assert "diagnostics/sql/record_events.sql" in writers
    assert writers <= MAY_WRITE


def orm_writes(tree: ast.AST) -> Iterator[str]:
    """Give what a module writes through the models of events."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        names = {n.id for n in ast.walk(node.func) if isinstance(n, ast.Name)}
        if node.func.attr in WRITES and names & EVENT_MODELS:
            yield f"{sorted(names & EVENT_MODELS)}.{node.func.attr}"


def test_s0_45_no_module_writes_events_through_the_models() -> None:
    found = {
        name: list(orm_writes(ast.parse(text)))
        for name, text in sources()
        if name.endswith(".py")
    }
    assert {name: writes for name, writes in found.items() if writes} == {}
    planted = "EventPayload.objects.filter(a=1).update(b=2)"
    assert list(orm_writes(ast.parse(planted))) == ["['EventPayload'].update"]


def make_canaries() -> list[str]:
    random = Random("canaries")
    return [make(template, random)[0] for template in TEMPLATES]


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What is logged at any level, as it is written."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.getLogger().handlers[0].formatter)
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


def plant_in_ingestion(api: Api, canaries: list[str]) -> None:
    """Send events, refused ones among them, with a canary in every field that takes text."""
    every = " ".join(canaries)
    fields = (
        "correlation_id", "provider", "model", "source", "release", "environment",
        "finish_reason", "tool", "schema_version", "prompt_version", "parse_error_type",
    )  # fmt: skip
    events = [
        wire_event(**{name: canary}) for name in fields for canary in canaries[:4]
    ]
    events += [
        wire_event(
            raw_output_preview=f"see {canary}",
            validation_errors=[{"path": canary, "message": f"bad {canary}"}],
            attributes={canary: "x", "note": canary, "api_key": canary},
            repairs=[{"kind": canary}],
        )
        for canary in canaries
    ]
    events += [{"name": canary, "extra": every} for canary in canaries]
    assert api.post("events", {"events": events}).status_code < 500
    for body in (every, "{" + every, json.dumps([every]), f'{{"{every}": 1}}'):
        assert api.post("events", body.encode()).status_code < 500
    for canary in canaries[:6]:
        assert api.get("events", cursor=canary, q=canary).status_code < 500
        assert api.get(f"goals/{canary}").status_code < 500


def plant_in_goals(planner: Planner, canaries: list[str]) -> None:
    """Let the provider say canaries: in prose, plans, questions and exceptions."""
    every = " ".join(canaries)
    plan = PLAN.replace('"hi"', json.dumps(every))
    planner.run(f"I use {every}", plan, mode="plan", goal=f"log in with {every}")
    planner.run(json.dumps({"kind": "finish", "answer": every}), goal=every)
    planner.run({"text": every, "finish_reason": "length"}, plan, mode="plan")
    for canary in canaries[:3]:
        planner.run(PLAN.replace("echo", canary), plan, mode="plan", goal=canary)


def plant_in_logs(canaries: list[str]) -> None:
    logger = logging.getLogger("tests.canaries")
    for canary in canaries:
        logger.warning("got %s", canary)
        try:
            int(canary)
        except ValueError:
            logger.exception("failed")


def pages(client: Client, api: Api) -> Iterator[str]:
    """Give every page and answer that can be read, with the references of stored goals."""
    goals = [goal["id"] for goal in api.get("goals").json().get("results", [])][:2]
    for address in all_addresses():
        if address.route.startswith(("admin/", "accounts/")):
            continue
        values = goals if address.names else [""]
        for value in values:
            path = address.path(**dict.fromkeys(address.names, value))
            yield client.get(path).content.decode(errors="replace")
    for path in ("events", "goals", "failures", "series", "rejects", "entries"):
        yield api.get(path).content.decode()
    yield api.metrics()


@pytest.mark.django_db
def test_s0_45_canaries_planted_everywhere_are_found_nowhere(
    planner: Planner,
    api: Api,
    log: io.StringIO,
) -> None:
    canaries = make_canaries()
    assert register_secret(canaries[-1], "canary")
    plant_in_ingestion(api, canaries)
    plant_in_goals(planner, canaries)
    plant_in_logs(canaries)
    folding.fold()

    user = User.objects.create_user("anna", is_staff=True)
    Membership.objects.create(project=planner.project, user=user, role="admin")
    client = Client(raise_request_exception=False)
    client.force_login(user)
    shown = "\n".join(
        [*pages(client, api), log.getvalue(), *(str(m.message()) for m in mail.outbox)]
    )

    assert "[REDACTED:" in shown
    for canary in canaries:
        core = canary[len(canary) // 2 :][:16]
        assert core not in shown, canary[:6]
        assert tables_holding(core) == [], canary[:6]

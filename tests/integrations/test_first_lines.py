"""The lines of "Instrument your agent", run as printed: garbage is red, a valid answer is green."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from uuid import UUID

import pytest
from pytest_django.live_server_helper import LiveServer

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.settings.get_started import TABLE, ClientLines, clients_for
from diagnostics.store.models import Event
from failsoft.events import EventKind
from tests.integrations.clients import ENVIRONMENTS, FAMILIES, ROOT
from tests.integrations.environments import prepare
from tests.integrations.provider import Provider
from tests.integrations.relay import running_relay

pytestmark = [pytest.mark.integrations, pytest.mark.django_db(transaction=True)]
CHOSEN = os.environ.get("FAMILIES", "").split()
GARBAGE, GOOD = "Sure! Go to Oslo.", '{"city": "Oslo", "days": 3}'
# Clients that ask for the answer as the arguments of a tool.
BY_TOOL = ("instructor", "pydantic_ai")
INSTALLED = [name for name, row in TABLE["clients"].items() if row["packages"]]


def family_of(name: str) -> str:
    return f"first_{name}"


def lines_of(name: str, url: str, key: str) -> ClientLines:
    return next(lines for lines in clients_for(url, key) if lines.name == name)


def run(lines: ClientLines, folder: Path, provider: Provider) -> str:
    """Run the lines after those that install, in a folder where the library is."""
    environment = ENVIRONMENTS / family_of(lines.name)
    (folder / "failsoft").symlink_to(ROOT / "failsoft")
    (folder / "node_modules").symlink_to(environment / "node_modules")
    if lines.file:
        (folder / lines.file).write_text(lines.code)
    connect = "\n".join(line for line in lines.shell.splitlines() if " install " not in line)
    # curl posts the answer itself.
    answer = provider.replies[0]["text"].replace('"', '\\"')
    connect = connect.replace(GARBAGE, answer)
    asked = {
        "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
        "NO_PROXY": "127.0.0.1",
        "OPENAI_API_KEY": "scripted",
        "OPENAI_BASE_URL": f"{provider.url}/v1",
        "ANTHROPIC_API_KEY": "scripted",
        "ANTHROPIC_BASE_URL": provider.url,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    done = subprocess.run(
        ["/bin/sh", "-c", f"{connect}\n{lines.start}"],
        cwd=folder,
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", TABLE["clients"])
def test_the_printed_lines_show_a_garbage_answer_and_a_valid_one(
    name: str, project: Project, live_server: LiveServer, provider: Provider, tmp_path: Path
) -> None:
    if CHOSEN and family_of(name) not in CHOSEN:
        pytest.skip("not among FAMILIES")
    if name in INSTALLED:
        if lines_of(name, "", "").file.endswith("mjs") and shutil.which("npm") is None:
            pytest.skip("Node is not installed")
        prepare(family_of(name))
    key = issue_key(project, "agent", [Scope.INGEST]).text
    known: set[UUID] = set()
    with running_relay(live_server.url) as endpoint:
        for text, kind in ((GARBAGE, EventKind.PARSE_INVALID), (GOOD, EventKind.SUCCEEDED)):
            provider.play([{"text": text}], is_tool=name in BY_TOOL)
            folder = tmp_path / kind
            folder.mkdir()
            printed = run(lines_of(name, endpoint, key), folder, provider)
            events = Event.objects.filter(project=project).exclude(event_id__in=known)
            assert {(event.node, event.kind, event.unchecked) for event in events} == {
                ("trip", kind, None)
            }, printed
            known |= {event.event_id for event in events}


@pytest.mark.parametrize("name", INSTALLED)
def test_the_printed_packages_are_those_that_are_tested(name: str) -> None:
    family = FAMILIES / family_of(name)
    packages = TABLE["clients"][name]["packages"]
    if (family / "package.json").exists():
        asked = json.loads((family / "package.json").read_text())["dependencies"]
        assert [f"{package}@{version}" for package, version in asked.items()] == packages
        return
    pinned = {line.split(" ")[0] for line in (family / "requirements.txt").read_text().splitlines()}
    assert {re.sub(r"\[.*\]", "", package) for package in packages} <= pinned

"""The snippets of the console do what they say when they are pasted into a shell."""

import os
import re
import shlex
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import (
    LOCAL_KEY_FILE,
    NAMED_KEY,
    ensure_default_project,
    issue_key,
    place_of_key,
)
from diagnostics.settings.get_started import ClientLines, clients_for
from diagnostics.store.models import Event
from diagnostics.store.partitions import ensure_partitions
from tests.console import make_member

pytestmark = pytest.mark.django_db(transaction=True)
DOCS = Path(__file__).parents[3] / "docs"
SNIPPET = re.compile(r'<div class="snippet"><pre[^>]*>(.*?)</pre>', re.DOTALL)


@pytest.fixture
def project(transactional_db: None, settings: LazySettings) -> Project:
    settings.FAILSOFT_REQUIRE_MFA = False
    ensure_partitions()
    return ensure_default_project()


@pytest.fixture
def snippets(project: Project, live_server: LiveServer) -> list[str]:
    """Give the texts of the page of the first steps, as one would copy them."""
    client = Client()
    person: User = make_member(project)
    client.force_login(person)
    host = live_server.url.removeprefix("http://")
    page = client.get("/setup/", headers={"host": host}).content.decode()
    return [unescape(text) for text in SNIPPET.findall(page)]


def paste(text: str, project: Project) -> subprocess.CompletedProcess[str]:
    """Run a text in a shell that knows a key."""
    key = issue_key(project, "pasted", [Scope.INGEST]).text
    return subprocess.run(
        ["/bin/sh", "-c", text],
        env={**os.environ, "FAILSOFT_API_KEY": key},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_the_curl_snippet_stores_a_checked_answer(snippets: list[str], project: Project) -> None:
    [text] = [text for text in snippets if "answered" in text]
    done = paste(text, project)
    assert '"accepted":1' in done.stdout, done.stderr
    event = Event.objects.get(project=project)
    assert (event.node, event.parse_error_type) == ("trip", "not_json")


# The others need their packages: tests/integrations/test_first_lines.py runs them.
def test_every_client_names_its_packages_with_versions(snippets: list[str]) -> None:
    installs = [text.splitlines()[0] for text in snippets if " install " in text]
    assert len(installs) == len([*clients_for("", "")]) - 1
    for line in installs:
        for package in shlex.split(line)[2:]:
            assert re.search(r"==\d|@\d|-\d+\.\d+\.\d+-py3", package), line


@pytest.mark.parametrize("lines", [*clients_for("http://host", "k")], ids=lambda one: one.name)
def test_at_most_five_lines_connect_an_agent(lines: ClientLines) -> None:
    commands = [line for line in lines.shell.splitlines() if not line.startswith(" ")]
    connecting = [line for line in commands if " install " not in line]
    if lines.code:
        own = re.compile(r"failsoft|telemetry", re.IGNORECASE)
        connecting += [line for line in lines.code.splitlines() if own.search(line)]
    assert 0 < len(connecting) <= 5
    if lines.file.endswith(".py"):
        compile(lines.code, lines.file, "exec")


def test_the_documentation_prints_the_same_lines() -> None:
    page = (DOCS / "clients.md").read_text(encoding="utf-8")
    for lines in clients_for("http://127.0.0.1:8000", "$(cat .local/api-key)"):
        assert f"## {lines.label}\n" in page
        assert f"```bash\n{lines.shell}\n```" in page
        assert f"\n{lines.code}\n```" in page or not lines.code


def test_the_key_of_a_snippet_is_where_the_local_stack_keeps_it(
    project: Project, settings: LazySettings, tmp_path: Path
) -> None:
    settings.FAILSOFT_LOCAL_STACK = True
    settings.FAILSOFT_DATA_DIR = tmp_path / "my data"
    place = tmp_path / "my data" / LOCAL_KEY_FILE
    assert place_of_key(project) == f"$(cat '{place}')"


def test_a_second_project_and_an_installation_name_a_variable(
    project: Project, settings: LazySettings
) -> None:
    assert place_of_key(project) == NAMED_KEY
    settings.FAILSOFT_LOCAL_STACK = True
    assert place_of_key(Project(slug="other", name="Other")) == NAMED_KEY

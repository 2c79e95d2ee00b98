"""The snippets of the console do what they say when they are pasted into a shell."""

import os
import re
import shutil
import subprocess
import sys
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
from diagnostics.store.models import Event
from diagnostics.store.partitions import ensure_partitions
from tests.console import make_member

pytestmark = pytest.mark.django_db(transaction=True)
SNIPPET = re.compile(r'<div class="snippet"><pre[^>]*>(.*?)</pre>', re.DOTALL)
PIP = re.compile(r"^python3 -m venv.*\n.*pip install.*\n", re.MULTILINE)


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
    # Its pip line wants a registry: the packages are here.
    text = PIP.sub("", text).replace("otel-trial/bin/python", sys.executable)
    return subprocess.run(
        ["/bin/sh", "-c", text],
        env={**os.environ, "FAILSOFT_API_KEY": key},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_the_curl_snippet_stores_an_event(snippets: list[str], project: Project) -> None:
    done = paste(snippets[0], project)
    assert '"accepted":1' in done.stdout, done.stderr
    assert Event.objects.get(project=project).model == "claude-haiku-4"


def test_the_python_snippet_stores_an_invalid_attempt(
    snippets: list[str], project: Project
) -> None:
    done = paste(snippets[1], project)
    assert '"accepted":1' in done.stdout, done.stderr
    assert Event.objects.get(project=project).parse_error_type == "truncated"


def test_the_opentelemetry_snippet_stores_a_call(snippets: list[str], project: Project) -> None:
    done = paste(snippets[2] + "\n" + snippets[3], project)
    assert done.returncode == 0, done.stderr
    event = Event.objects.get(project=project)
    assert (event.node, event.provider) == ("planner", "anthropic")


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

"""Clients generated from our OpenAPI document post events and answers that are taken."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from pytest_django.live_server_helper import LiveServer

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.store.models import Event, EventPayload
from diagnostics.store.partitions import ensure_partitions
from tests.integrations.clients import ENVIRONMENTS, FAMILIES
from tests.integrations.environments import prepare
from tests.integrations.families.schema import PLAN

pytestmark = [pytest.mark.integrations, pytest.mark.django_db(transaction=True)]
PYTHON, TYPESCRIPT = "openapi_python", "openapi_typescript"
CHOSEN = os.environ.get("FAMILIES", "").split()


@pytest.fixture
def environment(transactional_db: None, live_server: LiveServer) -> dict[str, str]:
    """A project whose node has a schema, and what a client must know to post to it."""
    ensure_partitions()
    project = Project.objects.create(slug="p", name="P")
    register_schema(project, "plan", PLAN, "3")
    key = issue_key(project, "client", [Scope.INGEST]).text
    told = {"FAILSOFT_URL": live_server.url, "FAILSOFT_KEY": key, "NO_PROXY": "127.0.0.1"}
    return {**os.environ, **told}


@pytest.fixture
def document(live_server: LiveServer, tmp_path: Path) -> Path:
    """The document as anybody gets it."""
    path = tmp_path / "openapi.json"
    with urlopen(f"{live_server.url}/api/schema?format=json") as answer:  # noqa: S310 - loopback
        path.write_bytes(answer.read())
    return path


def run(*command: object, cwd: Path, environment: dict[str, str]) -> str:
    """Run a program; what it printed is in the failure, too."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def require(family: str) -> Path:
    if CHOSEN and family not in CHOSEN:
        pytest.skip("not among FAMILIES")
    prepare(family)
    return ENVIRONMENTS / family


def check(printed: str) -> None:
    """Look at the server's answer as the client read it, and at what was stored."""
    told: dict[str, Any] = json.loads(printed.splitlines()[-1])
    assert (told["status"], told["accepted"]) == (200, 3), told
    results = [(one.get("name"), one.get("parse_error_type")) for one in told["results"]]
    assert results == [
        (None, None),
        ("graph.plan.succeeded", None),
        ("graph.plan.parse_invalid", "schema_invalid"),
    ]
    posted = Event.objects.get(correlation_id="run-1")
    assert EventPayload.objects.get(event_id=posted.event_id).attributes == {"region": "eu"}


def test_a_client_by_openapi_python_client_posts_events_that_are_taken(
    document: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    programs = require(PYTHON) / "bin"
    family, client = FAMILIES / PYTHON, tmp_path / "client"
    generate = [programs / "openapi-python-client", "generate", "--meta", "setup"]
    said = run(
        *generate,
        *("--path", document, "--output-path", client, "--config", family / "config.yml"),
        cwd=tmp_path,
        environment=environment,
    )
    assert "Endpoint will not be generated" not in said
    assert "Unable to process schema" not in said
    install = [programs / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    built = ["--no-build-isolation", "--disable-pip-version-check", "--force-reinstall", client]
    run(*install, *built, cwd=tmp_path, environment=environment)
    check(run(programs / "python", family / "client.py", cwd=tmp_path, environment=environment))


@pytest.mark.skipif(shutil.which("npm") is None, reason="Node is not installed")
def test_types_by_openapi_typescript_post_events_that_are_taken(
    document: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    modules = require(TYPESCRIPT) / "node_modules"
    (tmp_path / "node_modules").symlink_to(modules)
    for name in ("client.ts", "package.json"):
        shutil.copy(FAMILIES / TYPESCRIPT / name, tmp_path)
    programs = modules / ".bin"
    make = [programs / "openapi-typescript", document, "-o", "failsoft.d.ts"]
    run(*make, cwd=tmp_path, environment=environment)
    compile_it = [programs / "tsc", "--strict", "--target", "es2022", "--module", "nodenext"]
    run(*compile_it, "client.ts", cwd=tmp_path, environment=environment)
    check(run("node", "client.js", cwd=tmp_path, environment=environment))

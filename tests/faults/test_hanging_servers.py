"""PostgreSQL or the broker hangs, as a stopped process does; a child of the web server dies."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from tests import embedded
from tests.diagnostics.builders import wire_event
from tests.faults.stack import eventually, free_port, hanging
from tests.faults.test_ingest_kills import Server, manage
from tests.security.web import ROOT, Web, running_web

pytestmark = pytest.mark.faults

UNIT = ROOT / "docs/deployment/systemd/failsoft-web.service"
MAKE_KEY = """
from agents.llm.models import LanguageModel, Provider
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.projects import ensure_default_project, issue_key
project = ensure_default_project()
provider = Provider.objects.create(
    project=project, name="stub", adapter="openai", base_url="http://127.0.0.1:9/v1")
LanguageModel.objects.create(
    project=project, provider=provider, name="stub-1", is_default=True)
print(issue_key(project, "faults", list(Scope)).text)
"""
SIGN_IN = """
from django.contrib.auth.models import User
from django.test import Client
from diagnostics.accounts.models import Membership
from diagnostics.accounts.projects import ensure_default_project
user = User.objects.create_user("reader")
Membership.objects.create(user=user, project=ensure_default_project(), role="viewer")
client = Client()
client.force_login(user)
print(client.session.session_key)
"""
EVENTS = "SELECT count(*) FROM diagnostics_event"
GOALS = "SELECT count(*) FROM agents_goal"
POSTS = 12
# Promised are 1, 2 and 3 seconds; the machine may be busy. A hang lasts longer.
SOON_SECONDS = 10
HANGS_SECONDS = 30


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with embedded.throw_away_folder() as folder:
        running = Server(folder)
        try:
            manage(running, "migrate", "--verbosity", "0")
            yield running
        finally:
            running.end()


@pytest.fixture(scope="module")
def key(server: Server) -> str:
    return manage(server, "shell", "-v", "0", "-c", MAKE_KEY).splitlines()[-1]


def health(web: Web) -> int:
    return web.ask("GET", "/healthz", None, {})[0]


def readiness(web: Web) -> tuple[int, dict[str, Any]]:
    code, body = web.ask("GET", "/readyz", None, {})
    return code, json.loads(body)["parts"]


@contextmanager
def answered_soon() -> Iterator[None]:
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < SOON_SECONDS


def count(server: Server, query: str) -> int:
    with psycopg.connect(server.url) as connection:
        row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def test_a_hanging_database_stops_neither_health_nor_readiness(server: Server, key: str) -> None:
    before = count(server, EVENTS)
    with (
        running_web(DATABASE_URL=server.url, BROKER_URL="memory://") as web,
        ThreadPoolExecutor(POSTS) as posters,
    ):
        assert web.post_events(key, [wire_event()])[0] == 200
        assert readiness(web)[1]["database"] == {"ok": True}
        with hanging(*server.pids()):
            posts = [posters.submit(web.post_events, key, [wire_event()]) for _ in range(POSTS)]
            time.sleep(1)
            for _ in range(3):
                with answered_soon():
                    assert health(web) == 200
                    code, parts = readiness(web)
                assert code == 503
                assert parts["database"]["ok"] is False
                assert parts["broker"] == {"ok": True}
        codes = [post.result()[0] for post in posts]
        # Some had to wait too long for a connection, and may be sent again.
        assert set(codes) <= {200, 503}
        with answered_soon():
            assert readiness(web)[1]["database"] == {"ok": True}
    assert count(server, EVENTS) == before + 1 + codes.count(200)


def test_pages_are_answered_503_while_the_database_hangs(server: Server) -> None:
    session = manage(server, "shell", "-v", "0", "-c", SIGN_IN).splitlines()[-1]
    signed_in = {"Cookie": f"sessionid={session}"}

    def read_page(web: Web) -> tuple[int, bytes]:
        with answered_soon():
            return web.ask("GET", "/", None, signed_in)

    with (
        running_web(DATABASE_URL=server.url, BROKER_URL="memory://") as web,
        # More than the web server has threads for.
        ThreadPoolExecutor(POSTS) as readers,
    ):
        assert read_page(web)[0] == 200
        with hanging(*server.pids()):
            pages = [readers.submit(read_page, web) for _ in range(POSTS)]
            answers = [page.result() for page in pages]
            assert {code for code, _ in answers} == {503}
            assert all(b"Database unavailable" in body for _, body in answers)
        assert eventually(lambda: read_page(web)[0] == 200, SOON_SECONDS)


def test_a_hanging_broker_delays_a_goal_by_seconds_and_nothing_else(
    server: Server, key: str
) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    goal = json.dumps({"goal": "Echo the word hello"}).encode()
    with (
        embedded.running_broker() as broker,
        running_web(DATABASE_URL=server.url, BROKER_URL=broker) as web,
        ThreadPoolExecutor(8) as callers,
    ):
        path = broker.removeprefix("redis+socket://").split("?")[0]
        with redis.Redis(unix_socket_path=path) as client:
            pid = int(client.info("server")["process_id"])
        with hanging(pid):
            goals = [
                callers.submit(web.ask, "POST", "/api/v1/goals", goal, headers) for _ in range(4)
            ]
            with answered_soon():
                assert health(web) == 200
                assert web.post_events(key, [wire_event()])[0] == 200
            with answered_soon():
                assert {answer.result()[0] for answer in goals} == {202}
            with answered_soon():
                code, parts = readiness(web)
            assert code == 503
            assert not parts["broker"]["ok"]
            assert parts["database"] == {"ok": True}
        with answered_soon():
            assert readiness(web)[1]["broker"] == {"ok": True}
    assert count(server, GOALS) == 4


def shipped_words(port: int) -> list[str]:
    """Return the command of the shipped unit, on another port."""
    unit = UNIT.read_text(encoding="utf-8").replace("\\\n", " ")
    line = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert line is not None
    words = shlex.split(line[1])[1:]
    words[words.index("--port") + 1] = str(port)
    return words


def children(pid: int) -> set[int]:
    """Return the processes that serve; one of them only tracks resources."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return {
        child
        for child in map(int, text.split())
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
        or b"granian" in Path(f"/proc/{child}/cmdline").read_bytes()
    }


@contextmanager
def shipped_web(server: Server) -> Iterator[Web]:
    """Start the web server of the shipped unit."""
    web_port = free_port()
    env = {**os.environ, "DATABASE_URL": server.url, "BROKER_URL": "memory://"}
    process = subprocess.Popen(
        [sys.executable, *shipped_words(web_port)], cwd=ROOT, env=env, start_new_session=True
    )
    try:
        yield Web(web_port, process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=10)


def test_a_killed_child_of_the_shipped_web_server_is_replaced_beside_its_sibling(
    server: Server,
) -> None:
    with shipped_web(server) as web:
        process = web.process
        assert eventually(lambda: health(web) == 200, 60)
        assert eventually(lambda: len(children(process.pid)) == 2, 60)
        first, second = sorted(children(process.pid))
        os.kill(first, signal.SIGKILL)
        assert eventually(lambda: health(web) == 200, SOON_SECONDS)
        assert eventually(lambda: len(children(process.pid) - {first}) == 2, HANGS_SECONDS)
        assert second in children(process.pid)
        assert process.poll() is None


def is_loading(pid: int) -> bool:
    """Whether a process has a package that only the product loads."""
    return "css_inline" in Path(f"/proc/{pid}/maps").read_text()


def test_a_stop_while_the_workers_of_the_web_server_start_ends_it(server: Server) -> None:
    with shipped_web(server) as web:
        assert eventually(lambda: any(map(is_loading, children(web.process.pid))), 60)
        web.process.send_signal(signal.SIGTERM)
        assert web.process.wait(timeout=HANGS_SECONDS) == 0

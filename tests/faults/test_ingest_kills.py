"""Web and PostgreSQL are killed at random moments while a client posts: what was acknowledged
is stored, once; nothing else than 200, 429, 503 or a broken connection is ever answered.

INGEST_KILLS=40 makes it longer.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import psycopg
import pytest

from config.local import postgres
from tests import embedded
from tests.diagnostics.builders import degraded, succeeded, wire_event
from tests.faults.stack import eventually
from tests.security.web import ROOT, Web, running_web

pytestmark = pytest.mark.faults

KILLS = int(os.environ.get("INGEST_KILLS", "6"))
BATCH = 20
URL = "/api/v1/events"
MAKE_KEY = """
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.projects import ensure_default_project, issue_key
print(issue_key(ensure_default_project(), "faults", [Scope.INGEST]).text)
"""


class Server:
    """A durable PostgreSQL that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.sockets = folder / "pg", folder / "s"
        self.sockets.mkdir(mode=0o700)
        postgres.initialise(self._folder)
        self.start()

    @property
    def url(self) -> str:
        return postgres.database_url(self.sockets)

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        postgres.forget_dead_server(self._folder)
        command = postgres.server_command(self._folder, self.sockets)
        self._process = subprocess.Popen(
            command,
            cwd="/",
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert eventually(lambda: postgres.ensure_database(self.sockets), 60)

    def pids(self) -> list[int]:
        """Return the server and every one of its processes."""
        pid = int((self._folder / "postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]

    def kill(self) -> None:
        """Kill -9 the server and every one of its processes."""
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(timeout=20)

    def end(self) -> None:
        """Leave nothing behind."""
        with suppress(OSError, ValueError, IndexError):
            self.kill()


class Poster(Thread):
    """Posts batch after batch, each until it is acknowledged."""

    def __init__(self, key: str) -> None:
        super().__init__(daemon=True)
        self.web: Web | None = None
        self.acknowledged: list[str] = []
        self.codes: Counter[int] = Counter()
        self.wrong: list[bytes] = []
        self.is_over = Event()
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def run(self) -> None:
        """Post until told to end; a batch that was not answered is sent again."""
        makers = (wire_event, succeeded, degraded)
        while not self.is_over.is_set():
            batch = [makers[n % 3]() for n in range(BATCH)]
            body = json.dumps(batch).encode()
            while not self._post(body) and not self.is_over.is_set():
                time.sleep(0.05)
            else:
                if not self.is_over.is_set():
                    self.acknowledged += [event["event_id"] for event in batch]

    def _post(self, body: bytes) -> bool:
        web = self.web
        code, answer = web.ask("POST", URL, body, self._headers) if web is not None else (0, b"")
        self.codes[code] += 1
        if code not in (0, 200, 429, 503):
            self.wrong.append(answer[:300])
        if code != 200:
            return False
        told = json.loads(answer)
        return bool(told["accepted"] + told["duplicates"] == BATCH)


@pytest.fixture
def server() -> Iterator[Server]:
    with embedded.throw_away_folder() as folder:
        running = Server(folder)
        try:
            yield running
        finally:
            running.end()


def manage(server: Server, *words: str) -> str:
    """Run a command of the product on the server; what it prints."""
    env = {**os.environ, "DATABASE_URL": server.url}
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@contextmanager
def started_web(server: Server) -> Iterator[Web]:
    with running_web(DATABASE_URL=server.url) as web:
        yield web


def test_every_acknowledged_event_is_stored_once(server: Server) -> None:
    manage(server, "migrate", "--verbosity", "0")
    key = manage(server, "shell", "-v", "0", "-c", MAKE_KEY).splitlines()[-1]
    chance, poster = Random(11), Poster(key)
    with ExitStack() as stack:
        poster.web = web = stack.enter_context(started_web(server))
        poster.start()
        for turn in range(KILLS):
            time.sleep(0.4 + chance.random())
            if turn % 2:
                os.killpg(web.process.pid, signal.SIGKILL)
                poster.web = web = stack.enter_context(started_web(server))
            else:
                server.kill()
                time.sleep(chance.random() / 2)
                server.start()
        seen = len(poster.acknowledged)
        assert eventually(lambda: len(poster.acknowledged) > seen, 30)
        poster.is_over.set()
        poster.join(timeout=30)
    assert poster.wrong == []
    assert_stored_once(server, poster.acknowledged)
    assert poster.codes[200] > KILLS


def assert_stored_once(server: Server, acknowledged: list[str]) -> None:
    with psycopg.connect(server.url) as connection:
        rows = connection.execute(
            "SELECT event_id::text, count(*) FROM diagnostics_event GROUP BY 1"
        ).fetchall()
        counted = connection.execute(
            "SELECT coalesce(sum(events), 0) FROM diagnostics_rollup_delta"
        ).fetchone()
    stored: dict[Any, int] = dict(rows)
    assert acknowledged
    assert [one for one in acknowledged if one not in stored] == []
    assert set(stored.values()) == {1}
    # What was counted is what was stored, whatever the moment of the kill.
    assert counted == (len(stored),)

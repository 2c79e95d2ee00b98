"""The web server as it runs in production, on the database of the test."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any

from django.db import connection

from config.local.parts import web_arguments
from tests.faults.stack import free_port

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60
ANSWER_SECONDS = 60
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Web:
    """A running server."""

    port: int
    process: "subprocess.Popen[bytes]"

    def ask(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        """Send a request; the status, 0 when the connection was closed, and the body."""
        link = HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        try:
            with suppress(BrokenPipeError, ConnectionResetError):
                link.request(method, path, body, headers)
            answer = link.getresponse()
            return answer.status, answer.read()
        except (OSError, EOFError):
            return 0, b""
        finally:
            link.close()

    def post_events(self, key: str, events: list[dict[str, Any]]) -> tuple[int, bytes]:
        """Post events with a key."""
        told = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        return self.ask("POST", "/api/v1/events", json.dumps(events).encode(), told)

    def send_raw(self, sent: bytes, wait_seconds: float) -> bytes:
        """Send bytes as they are; what comes back within a time."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as link:
            link.settimeout(wait_seconds)
            link.sendall(sent)
            with suppress(OSError):
                return link.recv(65_536)
        return b""

    def cpu_seconds(self) -> float:
        """Give what all its processes have computed so far."""
        return sum(_ticks(pid) for pid in _group(self.process.pid)) / TICKS_A_SECOND

    def peak_megabytes(self) -> float:
        """Give the highest resident memory of all its processes so far."""
        return sum(_peak(pid) for pid in _group(self.process.pid)) / 1024


def database_url() -> str:
    """Give the address of the database that the tests use."""
    told = connection.settings_dict
    return f"postgresql://{told['USER']}@/{told['NAME']}?host={told['HOST']}"


@contextmanager
def running_web(log: IO[bytes] | None = None, /, **settings: str) -> Iterator[Web]:
    """Run the web server as `make run` does; `log` receives what it logs."""
    port = free_port()
    pool = {"FAILSOFT_DATABASE_POOL_SIZE": "8", "DATABASE_URL": database_url()}
    process = subprocess.Popen(
        [sys.executable, *web_arguments(port)],
        cwd=ROOT,
        env={**os.environ, **pool, **settings},
        stderr=log,
        start_new_session=True,
    )
    web = Web(port, process)
    try:
        deadline = time.monotonic() + START_SECONDS
        while web.ask("GET", "/healthz", None, {})[0] != 200:
            assert process.poll() is None, "the web server has ended"
            assert time.monotonic() < deadline, "the web server does not answer"
            time.sleep(0.2)
        yield web
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=10)


def _group(leader: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            stat = (path / "stat").read_text().rpartition(")")[2].split()
            if int(stat[2]) == leader:
                found.append(int(path.name))
    return found


def _ticks(pid: int) -> int:
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    # Behind the name, which may hold spaces: time in the program and in the kernel.
    fields = told.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _peak(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0

"""A one-machine stack of a test's own: start it, look inside, see what is left."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120
LEFT_SECONDS = 10  # what the product promises after kill -9


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def clean_env(folder: Path) -> dict[str, str]:
    """Return an environment without the suite's own settings."""
    own = re.compile(r"FAILSOFT_|DATABASE_URL|BROKER_URL|DJANGO_|TEST_|PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not own.match(name)}
    return {**kept, "FAILSOFT_DATA_DIR": str(folder)}


def command(port: int, *words: str) -> list[str]:
    """Return what `make run` executes."""
    return [sys.executable, "-m", "config.local", "--port", str(port), *words]


def eventually(condition: Callable[[], bool], seconds: float) -> bool:
    """Does `condition` become true within `seconds`?"""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@contextmanager
def hanging(*pids: int) -> Iterator[None]:
    """Stop processes, which keep their sockets, until the end of the block."""
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


class Stack:
    """A running stack."""

    def __init__(self, folder: Path, *words: str, lead: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.port = free_port()
        self.output = folder.parent / f"{folder.name}.out"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*lead, *command(self.port, *words)],
                cwd=ROOT,
                env=clean_env(folder),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def said(self) -> str:
        """Return what it has printed so far."""
        return self.output.read_text(encoding="utf-8")

    def await_ready(self) -> None:
        """Wait for the line that says so."""

        def is_over() -> bool:
            return "is ready" in self.said() or self.process.poll() is not None

        assert eventually(is_over, START_SECONDS), self.said()
        assert "is ready" in self.said(), self.said()

    def lock(self) -> dict[str, object]:
        """Return who holds the data folder: url and pid of the supervisor."""
        return dict(json.loads((self.folder / "lock").read_text(encoding="utf-8")))

    def settings(self) -> dict[str, str]:
        """Return the addresses and keys of the running stack."""
        text = (self.folder / "runtime.json").read_text(encoding="utf-8")
        return dict(json.loads(text)["settings"])

    def pids(self) -> set[int]:
        """Return every process of this stack, by environment or current folder."""
        return {int(path.name) for path in Path("/proc").glob("[0-9]*") if self._is_ours(path)}

    def _is_ours(self, process: Path) -> bool:
        with suppress(OSError):
            if (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
            if (process / "cwd").readlink().is_relative_to(self.folder):
                return True
            mark = f"FAILSOFT_DATA_DIR={self.folder}".encode()
            return mark in (process / "environ").read_bytes().split(b"\0")
        return False

    def pid_of(self, *words: str) -> int:
        """Return the oldest process of this stack with all `words` in its command."""
        for pid in sorted(self.pids()):
            with suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                if all(word in line.decode() for word in words):
                    return pid
        raise LookupError(words)

    def nothing_is_left(self) -> bool:
        """Is every process of this stack gone within the promised time?"""
        return eventually(lambda: not self.pids(), LEFT_SECONDS)

    def is_ready(self) -> bool:
        """Does /readyz answer 200?"""
        return get_status(f"http://127.0.0.1:{self.port}/readyz") == 200

    def end(self) -> None:
        """Leave nothing behind, whatever the test did."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=30)
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(timeout=10)


def get_status(url: str) -> int:
    """Return the status of a GET; 0 when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - loopback
            return int(answer.status)
    except URLError as error:
        return int(getattr(error, "code", 0))
    except OSError:
        return 0


@contextmanager
def running(folder: Path, *words: str, lead: tuple[str, ...] = ()) -> Iterator[Stack]:
    """Run a stack until it is ready, then until the end of the block."""
    stack = Stack(folder, *words, lead=lead)
    try:
        stack.await_ready()
        yield stack
    finally:
        stack.end()

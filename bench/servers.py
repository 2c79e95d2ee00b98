"""Servers for benchmarks: embedded, durable as in production, gone at the end."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from config.local import broker, postgres

READY_SECONDS = 30


@contextmanager
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="failsoft-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def postgresql() -> Iterator[str]:
    with folder() as path:
        sockets = path / "s"
        sockets.mkdir(mode=0o700)
        postgres.initialise(path / "pg")
        command = postgres.server_command(path / "pg", sockets)
        with _running(command, path / "log", signal.SIGQUIT):
            await_ready(lambda: postgres.ensure_database(sockets))
            yield postgres.database_url(sockets)


@contextmanager
def valkey() -> Iterator[str]:
    with folder() as path:
        socket = path / "b.sock"
        command = broker.server_command(path, socket)
        with _running(command, path / "log", signal.SIGTERM):
            await_ready(lambda: broker.answers(socket))
            yield broker.broker_url(socket)


@contextmanager
def _running(command: list[str], log: Path, end: signal.Signals) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own words
            command, stdout=output, stderr=output, cwd="/", start_new_session=True
        )
    try:
        yield
    finally:
        process.send_signal(end)
        process.wait(timeout=20)


def await_ready(is_ready: Callable[[], bool], seconds: float = READY_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not is_ready():
        if time.monotonic() > deadline:
            raise TimeoutError("a server did not start")
        time.sleep(0.05)

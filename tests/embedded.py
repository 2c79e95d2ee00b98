"""Throw-away servers: PostgreSQL before settings load, Valkey on demand."""

import base64
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from config.local import broker, postgres

READY_SECONDS = 20
PREFIX = "failsoft-test-"
# Set for processes below one that has started a database. No setting: it has no prefix.
DATABASE_MARK = "TESTS_HAVE_A_DATABASE"


@contextmanager
def throw_away_folder() -> Iterator[Path]:
    """A short, private folder (socket paths are limited), removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(command: list[str], path: Path, log: Path, end: signal.Signals) -> Iterator[None]:
    """Run a server until the end of the block; it also dies with this process."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, cwd="/", start_new_session=True
        )
    try:
        deadline = time.monotonic() + READY_SECONDS
        while not broker.answers(path):
            if process.poll() is not None or time.monotonic() > deadline:
                text = log.read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"{command[-1]} did not start:\n{text}")
            time.sleep(0.02)
        yield
    finally:
        process.send_signal(end)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
        process.kill()
        process.wait()


@contextmanager
def running_postgres() -> Iterator[str]:
    """A fresh server without durability; gives its URL."""
    with throw_away_folder() as folder:
        sockets = folder / "s"
        sockets.mkdir(mode=0o700)
        postgres.initialise(folder / "pg")
        options = {**postgres.THROW_AWAY, "shared_buffers": "64MB"}
        command = postgres.server_command(folder / "pg", sockets, options)
        log = folder / "log"
        with running(command, sockets / ".s.PGSQL.5432", log, signal.SIGQUIT):
            # Every connection resets and rolls back; "failsoft" itself stays empty.
            _await_database(sockets)
            yield postgres.database_url(sockets)


def _await_database(sockets: Path) -> None:
    """A socket is there before its server takes connections."""
    deadline = time.monotonic() + READY_SECONDS
    while not postgres.ensure_database(sockets):
        if time.monotonic() > deadline:
            raise RuntimeError(f"PostgreSQL took no connection in {READY_SECONDS} s")
        time.sleep(0.05)


@contextmanager
def running_broker() -> Iterator[str]:
    """A fresh Valkey on a unix socket; gives its URL."""
    with throw_away_folder() as folder:
        path = folder / "broker.sock"
        command = broker.server_command(folder, path)
        with running(command, path, folder / "log", signal.SIGTERM):
            yield broker.broker_url(path)


def remove_left_overs() -> None:
    """Remove the folders of sessions that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        pid = folder.name.removeprefix(PREFIX).split("-")[0]
        if not Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def settings_for_tests(seed: int = 20261121) -> dict[str, str]:
    """Environment of the suite; keys come from a seed, none is written anywhere."""
    generator = random.Random(seed)
    return {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "BROKER_URL": "memory://",
        "FAILSOFT_SECRET_KEY": generator.randbytes(32).hex(),
        "FAILSOFT_WORKING_KEY": base64.b64encode(generator.randbytes(32)).decode(),
        "FAILSOFT_BASE_URL": "http://testserver",
        "FAILSOFT_ALLOW_SCRIPTED": "true",
        "FAILSOFT_LOG_LEVEL": "WARNING",
        "FAILSOFT_STATIC_HASHED": "false",
        # Tests of staff sign in without a second factor, but where it is what they test.
        "FAILSOFT_REQUIRE_MFA": "false",
        # A test looks again at once.
        "FAILSOFT_VERDICT_SECONDS": "0",
    }


def start_for_session(stack: ExitStack) -> None:
    """Set the environment and start PostgreSQL, unless an xdist parent has done so."""
    if DATABASE_MARK in os.environ:
        return
    remove_left_overs()
    for name in [name for name in os.environ if name.startswith("FAILSOFT_")]:
        del os.environ[name]
    os.environ.update(settings_for_tests())
    os.environ["DATABASE_URL"] = stack.enter_context(running_postgres())
    folder = stack.enter_context(throw_away_folder())
    (folder / "static").mkdir()
    os.environ["FAILSOFT_DATA_DIR"] = str(folder)
    os.environ[DATABASE_MARK] = "running"

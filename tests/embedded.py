"""Throw-away servers: PostgreSQL before settings load, Valkey on demand."""

import base64
import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from config.local import broker, postgres
from config.local.binaries import find_postgresql

ROOT = Path(__file__).resolve().parents[1]
READY_SECONDS = 20
PREFIX = "failsoft-test-"
# Set for processes below one that has started a database. No setting: it has no prefix.
DATABASE_MARK = "TESTS_HAVE_A_DATABASE"
CLUSTER_SECONDS = 48 * 3600
# A database with all migrations, in the cluster that every server of a session starts from.
MIGRATED = "migrated"
# Settings of a disposable server, whose data need not survive a crash.
OPTIONS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "64MB",
}


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
    """A fresh server without durability, an empty database and a migrated one; gives its URL."""
    with throw_away_folder() as folder:
        shutil.copytree(_migrated_cluster(), folder / "pg")
        with serving(folder / "pg", folder, signal.SIGQUIT) as url:
            yield url


@contextmanager
def serving(
    cluster: Path, folder: Path, end: signal.Signals, options: dict[str, str] = OPTIONS
) -> Iterator[str]:
    """Serve a cluster, with its socket and its log in a short folder; gives its URL."""
    sockets = folder / "s"
    sockets.mkdir(mode=0o700)
    command = postgres.server_command(cluster, sockets, options)
    with running(command, sockets / ".s.PGSQL.5432", folder / "log", end):
        # Every connection resets and rolls back; "failsoft" itself stays empty.
        _await_database(sockets)
        yield postgres.database_url(sockets)


def _migrated_cluster() -> Path:
    """Return a stopped cluster to copy: made once a day for each state of the migrations.

    Initialising one and migrating it takes six seconds of CPU.
    """
    name = f"failsoft-cluster-{os.getuid()}-{_state_of_migrations()}"
    cluster = Path(tempfile.gettempdir()) / name
    with cluster.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cluster.exists():
            with throw_away_folder() as folder:
                postgres.initialise(folder / "pg")
                with serving(folder / "pg", folder, signal.SIGINT) as url:
                    program = str(find_postgresql() / "createdb")
                    where = ["--host", str(folder / "s"), "--username", postgres.ROLE]
                    postgres.run_once([program, *where, MIGRATED])
                    _migrate(url.replace("/failsoft?", f"/{MIGRATED}?"))
                (folder / "pg").rename(cluster)
    return cluster


def _state_of_migrations() -> str:
    """Return a digest of what a migrated database depends on; its partitions depend on the day."""
    digest = sha256(f"{datetime.now(UTC).date()} {find_postgresql()}".encode())
    paths = [ROOT / "requirements.txt", *ROOT.glob("*/migrations/**/*"), *ROOT.glob("*/*/sql/*")]
    for path in sorted(path for path in paths if path.suffix in {".py", ".sql", ".txt"}):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _migrate(url: str) -> None:
    env = {**os.environ, **settings_for_tests(), "DATABASE_URL": url}
    words = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
    subprocess.run(words, cwd=ROOT, env=env, check=True)


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
    """Remove the folders of sessions that were killed, and clusters of another day."""
    for cluster in Path(tempfile.gettempdir()).glob(f"failsoft-cluster-{os.getuid()}-*"):
        # Another session may be removing the same ones.
        with suppress(FileNotFoundError):
            if time.time() - cluster.stat().st_mtime > CLUSTER_SECONDS:
                shutil.rmtree(cluster, ignore_errors=True)
                cluster.with_suffix(".lock").unlink()
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

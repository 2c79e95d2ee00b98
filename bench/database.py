"""A throw-away PostgreSQL for a benchmark, migrated, with Django connected to it."""

import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management import call_command
from django.db import connections

from bench.ingest.measuring import cpu_of
from config.database import database_settings
from config.local import postgres
from diagnostics.store.partitions import ensure_partitions
from tests import embedded

# As an installation of this size would have it; durable, unlike the tests' servers.
OPTIONS = {
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "jit": "off",
}


@contextmanager
def running_database(folder: Path | None = None, *, is_kept: bool = False) -> Iterator[str]:
    """Give the URL of a fresh server, on `folder`'s disk or the temporary one's.

    One that is kept lies in `folder` itself and is there the next time, with its rows.
    """
    made = tempfile.mkdtemp(prefix="failsoft-bench-", dir=None if is_kept else folder)
    place = folder if folder and is_kept else Path(made)
    try:
        sockets = Path(made) / "s"
        sockets.mkdir(mode=0o700)
        place.mkdir(parents=True, exist_ok=True)
        postgres.initialise(place / "pg")
        command = postgres.server_command(place / "pg", sockets, OPTIONS)
        log = place / "log"
        ready = sockets / ".s.PGSQL.5432"
        with embedded.running(command, ready, log, signal.SIGINT):
            embedded._await_database(sockets)
            url = postgres.database_url(sockets)
            _connect(url)
            yield url
            connections.close_all()
    finally:
        shutil.rmtree(made, ignore_errors=True)


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def server_cpu_seconds(pids: list[int]) -> float:
    """Add up the CPU time of server processes."""
    return sum(map(cpu_of, pids))


def _connect(url: str) -> None:
    connection = connections["default"]
    connection.close()
    connection.settings_dict.update(database_settings(url, 0))
    call_command("migrate", verbosity=0)
    ensure_partitions()

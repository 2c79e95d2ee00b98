"""A throw-away PostgreSQL for a benchmark, migrated, with Django connected to it."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
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
def running_server(folder: Path | None = None, *, is_kept: bool = False) -> Iterator[str]:
    """Give the URL of a fresh server, on `folder`'s disk or the temporary one's.

    One that is kept lies in `folder` itself and is there the next time, with its rows.
    """
    made = Path(tempfile.mkdtemp(prefix="failsoft-bench-", dir=None if is_kept else folder))
    place = folder if folder and is_kept else made
    try:
        place.mkdir(parents=True, exist_ok=True)
        postgres.initialise(place / "pg")
        with embedded.serving(place / "pg", made, signal.SIGINT, OPTIONS) as url:
            yield url
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def running_database(folder: Path | None = None, *, is_kept: bool = False) -> Iterator[str]:
    """Connect Django to such a server, migrated."""
    with running_server(folder, is_kept=is_kept) as url:
        connection = connections["default"]
        connection.close()
        connection.settings_dict.update(database_settings(url, 0))
        call_command("migrate", verbosity=0)
        ensure_partitions()
        yield url
        connections.close_all()


say = partial(print, flush=True)
"""Print a line at once, also into a pipe."""


def server_cpu_seconds(pids: list[int]) -> float:
    """Add up the CPU time of server processes."""
    return sum(map(cpu_of, pids))

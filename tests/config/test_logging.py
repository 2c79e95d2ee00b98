"""What processes log while the database is away or the disk of the log is full."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import DatabaseError, InterfaceError, OperationalError, ProgrammingError
from psycopg import errors

from config.logging import OutageFilter

REFUSED = 'connection to server at "db" failed: Connection refused'


def record(error: Exception) -> logging.LogRecord:
    """Return what Celery logs of a task that raised."""
    info = (type(error), error, None)
    return logging.LogRecord("celery.app.trace", logging.ERROR, "", 0, "Task raised", (), info)


def caused(error: DatabaseError, cause: Exception) -> DatabaseError:
    error.__cause__ = cause
    return error


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [0.0]
    monkeypatch.setattr("config.logging.monotonic", lambda: clock[0])
    return clock


OUTAGES = [
    OperationalError(REFUSED),
    InterfaceError("connection already closed"),
    caused(OperationalError("terminating connection"), errors.AdminShutdown()),
    caused(OperationalError("could not extend file"), errors.DiskFull()),
]


@pytest.mark.parametrize("error", OUTAGES, ids=str)
def test_an_outage_of_the_database_is_one_line_in_half_a_minute(
    now: list[float], error: Exception
) -> None:
    outages = OutageFilter()
    first = record(error)
    assert outages.filter(first)
    assert first.exc_info is None
    assert not outages.filter(record(error))
    now[0] = 31
    assert outages.filter(record(error))


def test_the_line_of_an_outage_says_what_to_look_at() -> None:
    line = record(OperationalError(REFUSED))
    OutageFilter().filter(line)
    assert "nothing listens at the address of DATABASE_URL" in line.getMessage()


def test_a_line_of_structlog_keeps_its_fields() -> None:
    line = record(OperationalError(REFUSED))
    line.msg = {"event": "refresh failed", "project": 7, "exception": "Traceback ..."}
    assert OutageFilter().filter(line)
    reason = "nothing listens at the address of DATABASE_URL"
    assert line.msg == {"event": f"the database is away: {reason}", "project": 7}


def test_a_pool_without_a_free_connection_is_named() -> None:
    line = record(OperationalError("couldn't get a connection after 5.00 sec"))
    OutageFilter().filter(line)
    assert "no connection of the pool" in line.getMessage()


OTHERS = [
    InterfaceError("the cursor is closed"),
    OperationalError("number of parameters must be between 0 and 65535"),
    ProgrammingError("no such column"),
    caused(OperationalError("deadlock detected"), errors.DeadlockDetected()),
    caused(OperationalError("statement timeout"), errors.QueryCanceled()),
    ValueError("mine"),
]


@pytest.mark.parametrize("error", OTHERS, ids=str)
def test_other_errors_keep_their_traceback(now: list[float], error: Exception) -> None:
    outages = OutageFilter()
    for _ in range(2):
        line = record(error)
        assert outages.filter(line)
        assert line.exc_info is not None


START = """
import json, logging.config, multiprocessing
with open("config/web_logging.json") as file:
    logging.config.dictConfig(json.load(file))
logging.warning("lost")
child = multiprocessing.get_context("fork").Process(target=logging.warning, args=("lost",))
child.start()
child.join()
print(child.exitcode)
"""


def test_a_closed_stderr_ends_no_process() -> None:
    started = "import sys\nsys.stderr = sys.__stderr__ = None\n" + START.partition("child =")[0]
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", started], cwd=root, check=False)
    assert done.returncode == 0


def test_a_full_disk_takes_the_log_and_no_process() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", START],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=full,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, b"0\n")

"""`manage.py` as typed at a terminal: what it says before any command runs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from failsoft import VERSION
from tests.embedded import settings_for_tests

TOP = Path(__file__).resolve().parents[2]


def manage(*words: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FAILSOFT_")}
    env = {**kept, **settings_for_tests(), **settings}
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=TOP,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("word", ["--version", "version"])
def test_the_version_is_the_products_own(word: str) -> None:
    done = manage(word)
    assert (done.returncode, done.stdout) == (0, f"Failsoft {VERSION}\n")


@pytest.mark.slow
def test_a_database_that_does_not_answer_is_told_in_one_line() -> None:
    done = manage("verify_audit", DATABASE_URL="postgresql://nobody@127.0.0.1:1/failsoft")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("The database of DATABASE_URL does not answer: ")
    assert "Connection refused" in line


@pytest.mark.slow
def test_a_command_reads_the_environment_file(tmp_path: Path) -> None:
    file = tmp_path / "failsoft.env"
    file.write_text("FAILSOFT_MAX_ATTEMPTS=4\n", encoding="utf-8")
    done = manage("show_retry", FAILSOFT_ENV_FILE=str(file))
    assert "max_retries = 4  (FAILSOFT_MAX_ATTEMPTS)" in done.stdout


@pytest.mark.slow
def test_ctrl_c_ends_a_command_without_a_traceback() -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FAILSOFT_")}
    # What runs in the background of a shell ignores interrupts, and so do its children.
    command = subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, "manage.py", "parse"],
        cwd=TOP,
        env={**kept, **settings_for_tests()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stdin is not None
    assert command.stdout is not None
    command.stdin.write('{"raw": "{}"}\n')
    command.stdin.flush()
    assert command.stdout.readline()
    command.send_signal(signal.SIGINT)
    _, errors = command.communicate(timeout=60)
    assert (command.returncode, errors) == (130, "Interrupted.\n")

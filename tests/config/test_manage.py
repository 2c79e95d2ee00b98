"""`manage.py` as typed at a terminal: what it says before any command runs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from config.checks import check_database
from failsoft import VERSION
from manage import describe_refusal
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


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("statement", "remedy"),
    [
        ("SELECT * FROM nowhere", "`manage.py migrate` creates them"),
        ("SELECT nothing FROM diagnostics_project", "`manage.py migrate` upgrades them"),
        ("SET TRANSACTION READ ONLY; CREATE TABLE t ()", "leads to a standby"),
        ("SET LOCAL search_path = nowhere; CREATE TABLE t ()", "search_path"),
        ("SET LOCAL statement_timeout = 1; SELECT pg_sleep(5)", "statement_timeout"),
        ("CREATE ROLE r; SET LOCAL ROLE r; CREATE TABLE public.t ()", "must own the database"),
    ],
)
def test_what_an_administrator_can_mend_is_one_line(statement: str, remedy: str) -> None:
    with (
        pytest.raises(DatabaseError) as refusal,
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    line = describe_refusal(refusal.value)
    assert line is not None
    assert remedy in line
    assert "\n" not in line


@pytest.mark.django_db
def test_a_fault_of_a_query_keeps_its_traceback() -> None:
    with (
        pytest.raises(DatabaseError) as refusal,
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT 1 / 0")
    assert describe_refusal(refusal.value) is None


@pytest.mark.slow
def test_a_database_that_cannot_store_every_character_is_refused_by_migrate() -> None:
    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    done = manage("migrate", DATABASE_URL=url.replace("/failsoft?", "/latin?"))
    assert done.returncode == 1
    assert "config.E011" in done.stderr
    assert "LATIN1" in done.stderr


@pytest.mark.django_db
def test_a_role_whose_transactions_fail_each_other_is_warned_of() -> None:
    assert check_database(None, databases=["default"]) == []
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL default_transaction_isolation = 'serializable'")
    (warning,) = check_database(None, databases=["default"])
    assert warning.id == "config.W005"
    assert "serializable" in warning.msg


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_to_is_named_in_one_line() -> None:
    done = manage("collectstatic", "--no-input", FAILSOFT_DATA_DIR="/proc/nowhere")
    assert done.returncode == 1
    assert done.stderr == "/proc/nowhere: No such file or directory.\n"

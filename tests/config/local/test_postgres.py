"""The embedded server: made once, whole or anew, never as root, on a socket alone."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from config.local import binaries, postgres
from config.local.binaries import BinaryMissingError, find_postgresql
from tests import embedded
from tests.embedded import OPTIONS, running, throw_away_folder
from tests.faults.stack import eventually

WAYS = ["auto", "identity"] if os.getuid() == 0 else ["auto"]


@pytest.fixture
def folder() -> Iterator[Path]:
    with throw_away_folder() as folder:
        (folder / "s").mkdir(mode=0o700)
        yield folder


def connect(folder: Path) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(postgres.database_url(folder / "s"), autocommit=True)


def serve(folder: Path) -> Iterator[None]:
    command = postgres.server_command(folder / "pg", folder / "s", OPTIONS)
    path = folder / "s" / ".s.PGSQL.5432"
    with running(command, path, folder / "log", signal.SIGINT):
        # Its socket is there before it takes connections.
        assert eventually(lambda: postgres.ensure_database(folder / "s"), 60)
        assert postgres.ensure_database(folder / "s")
        yield


def test_rows_outlive_a_change_of_the_way_out_of_root(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count, way in enumerate([*WAYS, *WAYS]):
        monkeypatch.setattr(postgres, "METHOD", way)
        postgres.initialise(folder / "pg")
        for _ in serve(folder):
            with connect(folder) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
                connection.execute("INSERT INTO kept VALUES (1)")
                row = connection.execute("SELECT count(*) FROM kept").fetchone()
                assert row == (count + 1,)
                assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
                assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)


def test_a_half_made_cluster_is_made_anew(folder: Path) -> None:
    (folder / "pg").mkdir()
    (folder / "pg" / "PG_VERSION").write_text("18")
    (folder / "pg" / "left-over").touch()
    postgres.initialise(folder / "pg")
    assert postgres.is_initialised(folder / "pg")
    assert not (folder / "pg" / "left-over").exists()


def test_no_other_version_is_taken_for_one_whose_probe_was_interrupted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = folder / "postgres"
    program.write_text("#!/bin/sh\nkill -TERM $$\n")
    program.chmod(0o700)
    monkeypatch.setattr(binaries, "_postgresql_folders", lambda: iter([folder, Path("/other")]))
    with pytest.raises(BinaryMissingError, match="interrupted"):
        find_postgresql()


def test_a_pid_file_that_names_another_program_is_forgotten(folder: Path) -> None:
    pid_file = folder / "postmaster.pid"
    with subprocess.Popen(["/bin/sleep", "60"]) as other:
        pid_file.write_text(f"{other.pid}\n{folder}\n")
        postgres.forget_dead_server(folder)
        assert not pid_file.exists()
        other.kill()


def test_a_pid_file_of_a_running_server_is_kept(folder: Path) -> None:
    postgres.initialise(folder / "pg")
    for _ in serve(folder):
        postgres.forget_dead_server(folder / "pg")
        assert (folder / "pg" / "postmaster.pid").exists()


def test_a_failing_set_up_gives_its_reason(folder: Path) -> None:
    with pytest.raises(postgres.PostgresError, match="invalid locale"):
        postgres.run_once(
            postgres.launch_command(
                [str(find_postgresql() / "initdb"), "-D", str(folder / "pg"), "--locale=xx"],
                end_with=signal.SIGKILL,
                own=[folder],
            )
        )


def test_an_old_or_missing_server_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "postgres"
    old.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 14.9'\n")
    old.chmod(0o755)
    for folder in (tmp_path, tmp_path / "nowhere"):
        monkeypatch.setenv("PG_BIN", str(folder))
        with pytest.raises(BinaryMissingError, match="no PostgreSQL 15 or later"):
            find_postgresql()


def test_the_named_server_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = tmp_path / "postgres"
    server.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 15.19 (Debian 15)'\n")
    server.chmod(0o755)
    monkeypatch.setenv("PG_BIN", str(tmp_path))
    assert find_postgresql() == tmp_path


# The kernel knows the user, no file of users does, as in a container started with any uid.
NAMELESS = """
import sys
from pathlib import Path
from config.local import launch, postgres
launch.NOBODY = 54321
launch.become_plain_user("namespace", [])
print(postgres.is_ready(Path(sys.argv[1])))
"""


def test_a_user_without_a_name_sees_that_the_server_is_ready() -> None:
    with embedded.running_postgres() as url:
        sockets = url.partition("host=")[2]
        command = [sys.executable, "-c", NAMELESS, sockets]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip("no user namespaces here")
    assert done.stdout == "True\n", done.stderr

"""What an installation of an earlier release holds goes on after an upgrade.

`failsoft-0.1.0.sql.xz` is a plain dump of a database of 0.1.0 with at least one row in every table:
demo data, a goal of the embedded model, posted events that were not yet aggregated, and a row of
everything else. `failsoft-0.2.0.sql.xz` is the same after the upgrade, with a row in every new
table. All of it is generated.
"""

import lzma
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from psycopg import sql
from psycopg.conninfo import make_conninfo

from config.local.binaries import find_postgresql

DUMPS = sorted(Path(__file__).parent.glob("failsoft-*.sql.xz"))
DUMP = DUMPS[0]
NAME = f"failsoft_upgrade_{os.getpid()}"
# Partitions, and the extension that is created when words are first indexed.
ON_DEMAND = re.compile(r"_d20\d{6}|_m20\d{4}|ATTACH PARTITION|EXTENSION .*pg_trgm")
OTHER = {
    # Django itself adds rows.
    "django_migrations",
    "django_content_type",
    "auth_permission",
    # Those to come are silences.
    "diagnostics_maintenancewindow",
}
FULL_DISK = """#!/bin/sh
for word; do case $word in --file=*) echo PGDMP > "${word#--file=}";; esac; done
echo "No space left on device" >&2
exit 1
"""
Upgraded = tuple[str, dict[str, int]]
# On all of them: pytest-django sorts tests by it, and would upgrade once for each sort.
pytestmark = pytest.mark.django_db


def url_of(name: str) -> str:
    return make_conninfo(os.environ["DATABASE_URL"], dbname=name)


def environment(name: str) -> dict[str, str]:
    url = re.sub(r"/\w+(?=\?)", f"/{name}", os.environ["DATABASE_URL"])
    return {**os.environ, "DATABASE_URL": url}


def run(name: str, *words: str) -> str:
    """Return what a Python program prints that works on the database `name`."""
    done = subprocess.run(
        [sys.executable, *words], env=environment(name), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def counts(name: str) -> dict[str, int]:
    """Return the number of rows of every table; partitions count in their parent."""
    with psycopg.connect(url_of(name)) as client:
        tables = client.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')"
            " AND NOT relispartition AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        return {
            table: client.execute(
                sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
            ).fetchone()[0]  # type: ignore[index]
            for (table,) in tables
        }


def dump(name: str) -> str:
    """Return the statements that make the tables of a database."""
    command = [str(find_postgresql() / "pg_dump"), "--schema-only", "--no-owner", url_of(name)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def restore(name: str, statements: str) -> None:
    command = [str(find_postgresql() / "psql"), "-qX", "-v", "ON_ERROR_STOP=1", "-d", url_of(name)]
    subprocess.run(command, input=statements, text=True, stdout=subprocess.DEVNULL, check=True)


@contextmanager
def database(name: str) -> Iterator[str]:
    """Create a database for the length of the block."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield name
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def schema(name: str) -> set[str]:
    """Return the statements that make the tables, without what is created on demand.

    A restored condition is printed with other casts than one that was just made, so it is
    restored once before it is compared. A column's place in its table does not count.
    """
    with database(f"{name}_again") as again:
        restore(again, dump(name))
        text = dump(again)
    lines = (line for line in text.splitlines() if not line.startswith(("--", "\\")))
    return {
        "\n".join(sorted(filter(None, (x.strip().rstrip(",") for x in statement.splitlines()))))
        for statement in "\n".join(lines).split(";\n")
        if not ON_DEMAND.search(statement)
    }


@pytest.fixture(scope="module", params=DUMPS, ids=lambda path: path.stem)
def upgraded(request: pytest.FixtureRequest) -> Iterator[Upgraded]:
    """Name of a database of an earlier release that was migrated, and its rows before that."""
    with database(NAME) as name:
        restore(name, lzma.decompress(request.param.read_bytes()).decode())
        before = counts(name)
        run(name, "manage.py", "migrate", "--verbosity", "0")
        yield name, before


@pytest.mark.slow
def test_the_dump_has_a_row_in_every_table(upgraded: Upgraded) -> None:
    _, before = upgraded
    assert [table for table, rows in before.items() if not rows] == []


@pytest.mark.slow
def test_an_upgrade_loses_no_row(upgraded: Upgraded) -> None:
    name, before = upgraded
    after = counts(name)
    assert {table: after[table] for table in before if table not in OTHER} == {
        table: rows for table, rows in before.items() if table not in OTHER
    }


@pytest.mark.slow
def test_an_upgraded_database_has_the_tables_of_a_new_one(upgraded: Upgraded) -> None:
    assert schema(upgraded[0]) == schema(str(connection.settings_dict["NAME"]))


@pytest.mark.slow
def test_every_page_opens_on_upgraded_data(upgraded: Upgraded) -> None:
    pages = run(upgraded[0], "-m", "tests.upgrade.open_pages").split()
    # One of each kind of row is opened, not only the lists.
    for begin in ("/goals/", "/failures/", "/incidents/", "/reports/", "/models/"):
        assert [page for page in pages if page.startswith(begin) and page != begin], begin


@pytest.mark.slow
@pytest.mark.parametrize("upgraded", DUMPS[:1], indirect=True)
def test_unchecked_answers_raise_no_alarm_after_an_upgrade(upgraded: Upgraded) -> None:
    series, alarms = map(int, run(upgraded[0], "-m", "tests.upgrade.go_on", "unchecked").split())
    assert series > 3
    assert alarms == 0
    # Failures of the same agents do.
    assert int(run(upgraded[0], "-m", "tests.upgrade.go_on", "parse_invalid").split()[1]) > 0


@contextmanager
def of_0_1_0(folder: Path) -> Iterator[dict[str, str]]:
    """Restore a database of 0.1.0, and yield the environment of commands on it."""
    with database(f"{NAME}_{folder.name[-8:]}") as name:
        restore(name, lzma.decompress(DUMP.read_bytes()).decode())
        env = environment(name)
        path = f"{find_postgresql()}:{env['PATH']}"
        yield {**env, "PATH": path, "FAILSOFT_DATA_DIR": str(folder), "NAME": name}


def upgrade(env: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "manage.py", "upgrade", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True)


@pytest.mark.slow
def test_one_command_upgrades_and_one_goes_back_to_every_row_and_table(tmp_path: Path) -> None:
    with of_0_1_0(tmp_path) as env:
        name = env["NAME"]
        before = counts(name), schema(name)
        done = upgrade(env)
        assert done.returncode == 0, done.stderr
        assert run(name, "manage.py", "migrate", "--check") == ""
        (kept,) = (tmp_path / "dumps").glob("*.dump")
        assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert "up to date" in upgrade(env).stdout
        back = upgrade(env, "--back", str(kept))
        assert back.returncode == 0, back.stderr
        assert counts(name) == before[0]
        assert schema(name) ^ before[1] == set()


@pytest.mark.slow
def test_an_upgrade_that_fails_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    with of_0_1_0(tmp_path) as env:
        name = env["NAME"]
        with psycopg.connect(url_of(name)) as client:
            # A table of the new version is there already.
            client.execute("CREATE TABLE diagnostics_seriesname (id integer)")
        before = counts(name)
        done = upgrade(env)
        assert done.returncode == 1
        assert "the database is as it was" in done.stderr
        assert counts(name) == before


@pytest.mark.slow
def test_nothing_is_upgraded_or_dropped_beside_a_running_server_or_without_a_dump(
    tmp_path: Path,
) -> None:
    with of_0_1_0(tmp_path) as env:
        before = counts(env["NAME"])
        with psycopg.connect(url_of(env["NAME"])):
            assert "stop web, workers and beat" in upgrade(env).stderr
        broken = tmp_path / "broken.dump"
        broken.write_bytes(b"PGDMP")
        assert upgrade(env, "--back", str(broken)).returncode == 1
        assert counts(env["NAME"]) == before


@pytest.mark.slow
def test_a_database_of_a_newer_version_is_named_and_left_alone(tmp_path: Path) -> None:
    with of_0_1_0(tmp_path) as env:
        with psycopg.connect(url_of(env["NAME"])) as client:
            client.execute(
                "INSERT INTO django_migrations (app, name, applied)"
                " VALUES ('agents', '9999_newer', now())"
            )
        before = counts(env["NAME"])
        done = upgrade(env)
        assert done.returncode == 1
        assert "agents.9999_newer" in done.stderr
        assert counts(env["NAME"]) == before


@pytest.mark.slow
def test_a_dump_that_breaks_off_is_not_kept_and_nothing_is_upgraded(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "pg_dump"
    program.parent.mkdir()
    program.write_text(FULL_DISK)
    program.chmod(0o755)
    with of_0_1_0(tmp_path) as env:
        before = counts(env["NAME"])
        done = upgrade({**env, "PATH": f"{program.parent}:{env['PATH']}"})
        assert done.returncode == 1
        assert "No space left" in done.stderr
        assert list((tmp_path / "dumps").iterdir()) == []
        assert counts(env["NAME"]) == before

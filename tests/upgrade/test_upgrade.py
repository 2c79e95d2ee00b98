"""What an installation of 0.1.0 holds goes on after an upgrade.

`failsoft-0.1.0.sql.xz` is a plain dump of a database of 0.1.0 with at least one row in
every table: demo data, a goal of the embedded model, posted events that were not yet
aggregated, and a row of everything else. All of it is generated.
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

DUMP = Path(__file__).with_name("failsoft-0.1.0.sql.xz")
NAME = f"failsoft_upgrade_{os.getpid()}"
PARTITION = re.compile(r"_d20\d{6}|_m20\d{4}|ATTACH PARTITION")
OTHER = {
    # Django itself adds rows.
    "django_migrations",
    "django_content_type",
    "auth_permission",
    # Those to come are silences.
    "diagnostics_maintenancewindow",
}
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
    """Return the statements that make the tables, without those of partitions.

    A restored condition is printed with other casts than one that was just made, so it is
    restored once before it is compared. A column's place in its table does not count.
    """
    with database(f"{name}_again") as again:
        restore(again, dump(name))
        text = dump(again)
    lines = (line for line in text.splitlines() if not line.startswith(("--", "\\")))
    return {
        "\n".join(sorted(line.strip().rstrip(",") for line in statement.splitlines()))
        for statement in "\n".join(lines).split(";\n")
        if not PARTITION.search(statement)
    }


@pytest.fixture(scope="module")
def upgraded() -> Iterator[Upgraded]:
    """Name of a database of 0.1.0 that was migrated, and its rows before that."""
    with database(NAME) as name:
        restore(name, lzma.decompress(DUMP.read_bytes()).decode())
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
def test_unchecked_answers_raise_no_alarm_after_an_upgrade(upgraded: Upgraded) -> None:
    series, alarms = map(int, run(upgraded[0], "-m", "tests.upgrade.go_on", "unchecked").split())
    assert series > 3
    assert alarms == 0
    # Failures of the same agents do.
    assert int(run(upgraded[0], "-m", "tests.upgrade.go_on", "parse_invalid").split()[1]) > 0

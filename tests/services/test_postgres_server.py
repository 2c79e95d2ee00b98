import psycopg
import pytest
from psycopg import sql

from tests.services.conftest import named
from tests.services.processes import run

pytestmark = pytest.mark.services


def test_all_migrations_run_on_a_postgresql_server(fresh_database: str) -> None:
    named("TEST_POSTGRES_URL")
    addresses = {"DATABASE_URL": fresh_database}
    run(addresses, "manage.py", "migrate", "--verbosity", "0")
    run(addresses, "manage.py", "migrate", "--check")
    run(addresses, "manage.py", "check", "--database", "default")


def test_times_are_read_from_a_database_that_writes_them_in_another_style(
    fresh_database: str,
) -> None:
    with psycopg.connect(fresh_database, autocommit=True) as server:
        name = sql.Identifier(server.info.dbname)
        server.execute(sql.SQL("ALTER DATABASE {} SET datestyle = 'SQL, DMY'").format(name))
    ask = "from diagnostics.store.sql import fetch; fetch('SELECT now()')"
    addresses = {"DATABASE_URL": fresh_database, "PGDATESTYLE": "German"}
    run(addresses, "manage.py", "shell", "--no-imports", "-c", ask)

import os

import psycopg
import pytest
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg.conninfo import conninfo_to_dict

from config.database import database_settings


def test_a_server_is_named_as_usual() -> None:
    entry = database_settings("postgresql://u%40x:p%3A@db.example.org:5433/name", 0)
    assert entry["USER"] == "u@x"
    assert entry["PASSWORD"] == "p:"
    assert entry["HOST"] == "db.example.org"
    assert entry["PORT"] == "5433"
    assert entry["NAME"] == "name"


def test_a_unix_socket_is_named_by_its_folder() -> None:
    entry = database_settings("postgresql://u@/name?host=/a%20b/c", 0)
    assert entry["HOST"] == "/a b/c"
    assert "host" not in entry["OPTIONS"]


def test_other_options_reach_the_driver() -> None:
    entry = database_settings("postgresql://u@h/name?sslmode=verify-full", 0)
    assert entry["OPTIONS"]["sslmode"] == "verify-full"


def test_only_web_processes_pool_their_connections() -> None:
    alone = database_settings("postgresql://u@h/name", 0)
    shared = database_settings("postgresql://u@h/name", 8)
    assert "pool" not in alone["OPTIONS"]
    assert alone["CONN_MAX_AGE"] is None
    assert shared["OPTIONS"]["pool"]["max_size"] == 8
    assert shared["CONN_MAX_AGE"] == 0


def test_a_url_without_a_host_follows_the_variables_of_libpq(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = conninfo_to_dict(os.environ["DATABASE_URL"])
    monkeypatch.setenv("PGHOST", str(running["host"]))
    monkeypatch.setenv("PGUSER", str(running["user"]))
    entry = database_settings(f"postgresql:///{running['dbname']}", 0)
    wrapper = DatabaseWrapper({**entry, "TIME_ZONE": None}, "restored")
    with psycopg.connect(**wrapper.get_connection_params()) as connection:
        assert connection.info.dbname == running["dbname"]
        assert connection.info.host == running["host"]


def test_without_a_url_no_server_is_reached() -> None:
    assert database_settings("", 0)["HOST"].startswith("/nonexistent/")


def test_several_hosts_keep_their_ports() -> None:
    entry = database_settings("postgresql://u@a:5432,b:5433/name", 0)
    assert (entry["HOST"], entry["PORT"]) == ("a,b", "5432,5433")


def test_a_service_names_its_own_database() -> None:
    entry = database_settings("postgresql://?service=failsoft", 0)
    assert (entry["NAME"], entry["OPTIONS"]["service"]) == ("", "failsoft")

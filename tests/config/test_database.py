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

"""PgBouncer in transaction mode: each statement is the one that was meant, no setting stays."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.faults.stack import eventually, free_port
from tests.services.conftest import named
from tests.services.processes import run

pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="pgbouncer"),
]
# Eight threads share two connections to the server.
SHARED = """
import random
from concurrent.futures import ThreadPoolExecutor
import django
django.setup()
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from diagnostics.store.sql import execute_prepared
from diagnostics.web.pages import limited_statements

def ask(thread):
    for _ in range(20):
        n = random.randrange(9)
        assert execute_prepared(f"SELECT {n} + %(one)s::integer", {"one": 1}) == [(n + 1,)]
        with limited_statements(5):
            assert len(list(ContentType.objects.iterator(1))) == ContentType.objects.count()
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("0",)
    connection.close()

with ThreadPoolExecutor(8) as threads:
    list(threads.map(ask, range(8)))
"""


@pytest.fixture
def pooled(fresh_database: str, tmp_path: Path) -> Iterator[str]:
    """The address of a new database behind a pooler."""
    named("TEST_POSTGRES_URL")
    port = free_port()
    parts = conninfo_to_dict(fresh_database)
    server, name = " ".join(f"{key}={parts[key]}" for key in parts), parts["dbname"]
    file = tmp_path / "pgbouncer.ini"
    file.write_text(
        f"[databases]\n{name} = {server}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        "auth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n",
        encoding="utf-8",
    )
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(["pgbouncer", *user, str(file)], stdout=log, stderr=log)
    url = f"postgresql://{parts['user']}@127.0.0.1:{port}/{name}"
    try:
        assert eventually(lambda: answers(url), 10), (tmp_path / "log").read_text()
        yield url
    finally:
        process.terminate()
        process.wait(20)


def answers(url: str) -> bool:
    try:
        with psycopg.connect(url) as server:
            server.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


def test_threads_behind_a_pooler_run_their_own_statements(pooled: str) -> None:
    addresses = {"DATABASE_URL": pooled, "DJANGO_SETTINGS_MODULE": "config.settings"}
    run(addresses, "manage.py", "migrate", "contenttypes", "--verbosity", "0")
    run(addresses, "-c", SHARED)

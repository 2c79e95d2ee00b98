import pytest

from tests.services.conftest import named
from tests.services.processes import run

pytestmark = pytest.mark.services


def test_all_migrations_run_on_a_postgresql_server(fresh_database: str) -> None:
    named("TEST_POSTGRES_URL")
    addresses = {"DATABASE_URL": fresh_database}
    run(addresses, "manage.py", "migrate", "--verbosity", "0")
    run(addresses, "manage.py", "migrate", "--check")
    run(addresses, "manage.py", "check", "--database", "default")

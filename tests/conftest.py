"""What every test gets: throw-away servers, no network, settings of its own."""

from collections.abc import Iterator
from contextlib import ExitStack
from zlib import crc32

import django
import hypothesis
import pytest
from django.conf import settings
from django.db import connection
from django.utils.module_loading import import_string

from tests import embedded

# A slow machine makes no test wrong.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")
_session = ExitStack()
# Here and not in a hook: the conftest files of folders import models before any hook runs.
embedded.start_for_session(_session)
django.setup()
# A third of a second each, hundreds of times; servers of their own keep the product's hashes.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let two runs share the slow tests: `.ci/run` takes turns."""
    parser.addoption("--half", type=int, choices=(0, 1), help="of the slow tests, one half")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not asked for."""
    half = config.getoption("half")
    if half is not None:
        other = outside_of_half(half, items)
        config.hook.pytest_deselected(items=other)
        items[:] = [item for item in items if item not in set(other)]


def outside_of_half(half: int, items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the slow tests of the other half: whole files, whose tests share what they set up."""
    return [
        item
        for item in items
        if item.get_closest_marker("slow") and crc32(item.path.name.encode()) % 2 != half
    ]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what was started, also after Ctrl-C."""
    _session.close()


@pytest.fixture(scope="session")
def broker_url() -> Iterator[str]:
    """Address of a Valkey that lives as long as the session."""
    with embedded.running_broker() as url:
        yield url


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Copy the migrated database instead of migrating an empty one."""
    connection.settings_dict["TEST"]["TEMPLATE"] = embedded.MIGRATED


@pytest.fixture(autouse=True)
def _empty_event_tables(request: pytest.FixtureRequest) -> Iterator[None]:
    """Empty what `flush` does not know: the partitioned tables are not Django's."""
    yield
    marker = request.node.get_closest_marker("django_db")
    asks = marker is not None and marker.kwargs.get("transaction")
    if asks or {"transactional_db", "live_server"}.intersection(request.fixturenames):
        blocker = request.getfixturevalue("django_db_blocker")
        with blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "TRUNCATE diagnostics_event, diagnostics_event_payload,"
                " diagnostics_rollup_delta, diagnostics_rollup_minute,"
                " diagnostics_rollup_hour, diagnostics_rollup_day,"
                " diagnostics_rollup_hour_by_version, diagnostics_rollup_total,"
                " diagnostics_group_delta, diagnostics_group_hour,"
                " diagnostics_rollup_day_by_version, diagnostics_group_day"
            )
            # Its guards refuse even this.
            cursor.execute("ALTER TABLE diagnostics_auditentry DISABLE TRIGGER USER")
            cursor.execute("TRUNCATE diagnostics_auditentry, failsoft_cache")
            cursor.execute("ALTER TABLE diagnostics_auditentry ENABLE TRIGGER USER")


@pytest.fixture(autouse=True, scope="session")
def _no_kept_threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the threads of the runners go before the database does: their connections hold it."""
    has_database = any(item.get_closest_marker("django_db") for item in request.session.items)
    if has_database:
        request.getfixturevalue("django_db_setup")
    yield
    # Loaded here: the tests of pure packages need none of it.
    import_string("tests.kept_threads.end_kept_threads")()
    if has_database:
        # Work that was stopped by its deadline has replaced the one that Django closes itself.
        with request.getfixturevalue("django_db_blocker").unblock():
            connection.close()

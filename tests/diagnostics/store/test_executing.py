"""Named statements are read with the process, and planned once a connection."""

from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Any
from weakref import WeakSet

import pytest
from django.db import connection

from diagnostics.store import sql
from diagnostics.store.sql import execute_prepared, statement

pytestmark = pytest.mark.django_db
ADD = "SELECT %(one)s::integer + %(two)s::integer AS planned_once"


@pytest.fixture(autouse=True)
def _new_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    # A test that ran callbacks of a commit without one has left a setting that was undone.
    monkeypatch.setattr(sql, "_PREPARED", WeakSet())


def plans_of(mark: str) -> list[tuple[Any, ...]]:
    """Give how often each plan of a statement with this mark was used, by kind."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements"
            " WHERE statement LIKE %s",
            [f"%{mark}%"],
        )
        return list(cursor.fetchall())


def test_a_statement_has_one_plan_for_all_values() -> None:
    for number in range(7):
        assert execute_prepared(ADD, {"one": number, "two": 1}) == [(number + 1,)]
    assert plans_of("planned_once") == [(7, 0)]


def test_a_statement_without_rows_gives_none() -> None:
    execute_prepared("CREATE TEMPORARY TABLE told (n integer) ON COMMIT DROP", {})
    assert execute_prepared("INSERT INTO told VALUES (%(n)s::integer)", {"n": 1}) == []


def test_a_first_use_of_a_statement_opens_no_file() -> None:
    limits = getrlimit(RLIMIT_NOFILE)
    setrlimit(RLIMIT_NOFILE, (0, limits[1]))
    try:
        texts = [statement.__wrapped__(name) for name in ("record_events", "lag_seconds")]
    finally:
        setrlimit(RLIMIT_NOFILE, limits)
    assert "<<" not in "".join(texts)

"""A pooled connection is looked at when it is taken, and asked only when it has spoken."""

import os

import psycopg
import pytest

from config.database import database_settings
from config.database_backend.base import is_alive

pytestmark = pytest.mark.django_db


@pytest.fixture
def link() -> "psycopg.Connection[object]":
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


def test_only_pools_are_looked_at() -> None:
    pooled = database_settings("postgresql://u@h/name", 8)
    assert (pooled["ENGINE"], pooled["CONN_HEALTH_CHECKS"]) == ("config.database_backend", False)
    alone = database_settings("postgresql://u@h/name", 0)
    assert alone["CONN_HEALTH_CHECKS"] is True


def test_an_idle_connection_is_alive(link: "psycopg.Connection[object]") -> None:
    assert is_alive(link)
    link.close()
    assert not is_alive(link)


def test_a_connection_that_the_server_ended_is_not(link: "psycopg.Connection[object]") -> None:
    pid = link.info.backend_pid
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    assert not is_alive(link)


def test_a_connection_with_something_to_tell_is_asked(link: "psycopg.Connection[object]") -> None:
    link.execute("LISTEN heard")
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as other:
        other.execute("NOTIFY heard")
    assert is_alive(link)
    link.close()

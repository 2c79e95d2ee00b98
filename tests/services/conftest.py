"""Servers that are not ours: named by TEST_POSTGRES_URL, TEST_REDIS_URL, TEST_AMQP_URL."""

import os
import secrets
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

ADDRESSES = ("TEST_POSTGRES_URL", "TEST_REDIS_URL", "TEST_AMQP_URL")


def named(name: str) -> str:
    """Return an address, or skip the test that needs it."""
    url = os.environ.get(name)
    if not url:
        pytest.skip(f"{name} is not set")
    return url


@pytest.fixture
def fresh_database() -> Iterator[str]:
    """A new database on the named server; the embedded one when none is named."""
    server = os.environ.get("TEST_POSTGRES_URL") or os.environ["DATABASE_URL"]
    name = f"failsoft_test_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
        connection.execute(drop.format(sql.Identifier(name)))

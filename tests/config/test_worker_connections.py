"""A worker keeps its database connection from task to task, and replaces one that broke."""

import os

import psycopg
import pytest
from django.db import connection

import config.celery  # noqa: F401 - what a worker does around a task
from diagnostics.tasks import beat_heartbeat

pytestmark = pytest.mark.django_db(transaction=True)


def backend_of_a_task() -> int:
    """Run a task here; return the number of the server process that it used."""
    beat_heartbeat.apply(throw=True)
    server: psycopg.Connection[object] = connection.connection
    return server.info.backend_pid


def test_two_tasks_use_one_connection() -> None:
    assert backend_of_a_task() == backend_of_a_task()


def test_a_connection_that_the_server_ended_is_replaced() -> None:
    backend = backend_of_a_task()
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])
    assert backend_of_a_task() != backend

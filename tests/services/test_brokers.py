"""The same tasks over RabbitMQ (quorum queues) and Redis."""

import time
from pathlib import Path

import psycopg
import pytest

from tests.services.conftest import named
from tests.services.processes import run, running

pytestmark = pytest.mark.services

WORKER = ("-m", "celery", "-A", "config.celery", "worker", "--concurrency", "1")
SEND = "from config.celery import app; app.send_task('diagnostics.tasks.beat_heartbeat')"
EXECUTED_SECONDS = 60


def heartbeats(database: str) -> int:
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT count(*) FROM diagnostics_heartbeat").fetchone()
    return int(row[0]) if row else 0


@pytest.mark.parametrize("name", ["TEST_AMQP_URL", "TEST_REDIS_URL"])
def test_a_task_goes_through_a_broker_server(
    fresh_database: str, tmp_path: Path, name: str
) -> None:
    addresses = {"DATABASE_URL": fresh_database, "BROKER_URL": named(name)}
    run(addresses, "manage.py", "migrate", "--verbosity", "0")
    log = tmp_path / "worker.log"
    with running(addresses, log, *WORKER, "--queues", "fold,plan,steps"):
        run(addresses, "-c", f"import django; django.setup(); {SEND}")
        deadline = time.monotonic() + EXECUTED_SECONDS
        while not heartbeats(fresh_database):
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
            time.sleep(0.2)


def test_rabbitmq_queues_are_quorum_queues() -> None:
    url = named("TEST_AMQP_URL")
    code = (
        "import django; django.setup()\n"
        "from config.celery import app\n"
        "kinds = {q.queue_arguments.get('x-queue-type') for q in app.conf.task_queues}\n"
        "print(kinds)"
    )
    assert run({"BROKER_URL": url}, "-c", code).strip() == "{'quorum'}"

"""Both runners over RabbitMQ and Redis: the results of the pure executor, to the byte."""

from pathlib import Path

import pytest

from tests.services.conftest import named
from tests.services.processes import run, running

pytestmark = pytest.mark.services

WORKER = ("-m", "celery", "-A", "config.celery", "worker", "--concurrency", "2")
BEAT = ("-m", "celery", "-A", "config.celery", "beat", "--pidfile=")


@pytest.mark.parametrize("name", ["TEST_AMQP_URL", "TEST_REDIS_URL"])
def test_s2_47_every_case_has_the_same_results_on_workers(
    fresh_database: str, tmp_path: Path, name: str
) -> None:
    addresses = {"DATABASE_URL": fresh_database, "BROKER_URL": named(name)}
    run(addresses, "manage.py", "migrate", "--verbosity", "0")
    log = tmp_path / "worker.log"
    with (
        running(addresses, log, *WORKER, "--queues", "fold,plan,steps"),
        running(addresses, tmp_path / "beat.log", *BEAT),
    ):
        said = run(addresses, "-m", "tests.services.agreeing")
    assert "differs" not in said, said + log.read_text(encoding="utf-8")
    assert said.startswith("compared ")

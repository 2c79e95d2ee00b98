"""The outbox against a real broker that is away, is there, and goes away again."""

import time
from typing import Any

import pytest
import redis
from celery import Celery, current_app, shared_task

from config.celery import PUBLISH_SECONDS, Failsoft
from diagnostics.store import outbox
from diagnostics.store.outbox import enqueue, relay_batch, waiting
from tests import embedded
from tests.faults.stack import hanging

pytestmark = pytest.mark.django_db
TASK = "tests.diagnostics.sent_for_real"
QUEUE = "outbox-test"


@shared_task(name=TASK)
def sent_for_real(number: int) -> None:
    """Stand for any task a worker knows."""


def application(url: str) -> Celery:
    """Return an application that sends as ours does, to another broker."""
    app = Failsoft("test", broker=url, set_as_current=False)
    app.conf.broker_transport_options = current_app.conf.broker_transport_options
    return app


def count_in_queue(url: str) -> int:
    with application(url).connection_for_read() as connection:
        channel: Any = connection.default_channel
        return int(channel.client.llen(QUEUE))


@pytest.mark.slow
def test_a_row_is_sent_when_the_broker_is_there_and_kept_when_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox._Pause, "until", 0.0)
    nowhere = application("redis+socket:///nonexistent/broker.sock")
    monkeypatch.setattr(outbox, "current_app", nowhere)
    enqueue(TASK, {"number": 1}, QUEUE, None)
    assert outbox.wake_relay() is False
    assert relay_batch().broker_down
    with embedded.running_broker() as url:
        monkeypatch.setattr(outbox, "current_app", application(url))
        assert relay_batch().sent == 1
        assert count_in_queue(url) == 1
    enqueue(TASK, {"number": 2}, QUEUE, None)
    assert relay_batch().broker_down
    assert waiting().count() == 1


@pytest.mark.slow
def test_a_broker_that_hangs_costs_one_caller_two_seconds_and_the_next_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox._Pause, "until", 0.0)
    with embedded.running_broker() as url:
        monkeypatch.setattr(outbox, "current_app", application(url))
        assert outbox.wake_relay()
        enqueue(TASK, {"number": 1}, QUEUE, None)
        with hanging(broker_pid(url)):
            begin = time.monotonic()
            assert outbox.wake_relay() is False
            assert time.monotonic() - begin < 5 * PUBLISH_SECONDS
            begin = time.monotonic()
            assert outbox.wake_relay() is False
            assert time.monotonic() - begin < PUBLISH_SECONDS
            assert relay_batch().broker_down
        assert waiting().count() == 1
        assert relay_batch().sent == 1
        monkeypatch.setattr(outbox._Pause, "until", time.monotonic())
        assert outbox.wake_relay()
        assert outbox._Pause.until == 0.0


def broker_pid(url: str) -> int:
    path = url.removeprefix("redis+socket://").split("?")[0]
    with redis.Redis(unix_socket_path=path) as client:
        return int(client.info("server")["process_id"])

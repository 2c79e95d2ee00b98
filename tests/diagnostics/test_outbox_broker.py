"""The outbox against a real broker that is away, is there, and goes away again."""

from typing import Any

import pytest
from celery import Celery, current_app, shared_task

from diagnostics import submitting
from diagnostics.outbox import enqueue, relay_batch, waiting
from tests import embedded

pytestmark = pytest.mark.django_db
TASK = "tests.diagnostics.sent_for_real"
QUEUE = "outbox-test"


@shared_task(name=TASK)
def sent_for_real(number: int) -> None:
    """Stand for any task a worker knows."""


def application(url: str) -> Celery:
    """Give an application that sends as ours does, to another broker."""
    app = Celery("test", broker=url, set_as_current=False)
    app.conf.broker_transport_options = current_app.conf.broker_transport_options
    return app


def count_in_queue(url: str) -> int:
    with application(url).connection_for_read() as connection:
        channel: Any = connection.default_channel
        return int(channel.client.llen(QUEUE))


def test_a_row_is_sent_when_the_broker_is_there_and_kept_when_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(submitting._Pause, "until", 0.0)
    nowhere = application("redis+socket:///nonexistent/broker.sock")
    monkeypatch.setattr(submitting, "current_app", nowhere)
    enqueue(TASK, {"number": 1}, QUEUE, None)
    assert submitting.wake_relay() is False
    assert relay_batch().broker_down
    with embedded.running_broker() as url:
        monkeypatch.setattr(submitting, "current_app", application(url))
        assert relay_batch().sent == 1
        assert count_in_queue(url) == 1
    enqueue(TASK, {"number": 2}, QUEUE, None)
    assert relay_batch().broker_down
    assert waiting().count() == 1

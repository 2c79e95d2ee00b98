"""A committed row reaches the broker, whatever happens to the broker (C9)."""

import tracemalloc
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest
from celery import current_app, shared_task
from django.db import transaction
from kombu.exceptions import OperationalError

from diagnostics import clock
from diagnostics.store import outbox
from diagnostics.store import outbox as submitting
from diagnostics.store.models import OutboxMessage
from diagnostics.store.outbox import enqueue, purge_sent, relay_all, relay_batch, waiting

pytestmark = pytest.mark.django_db
Capture = Callable[..., AbstractContextManager[list[Callable[[], object]]]]
TASK = "tests.diagnostics.noted"


@shared_task(name=TASK)
def noted(**kwargs: object) -> None:
    """Stand for any task a worker knows."""


class Broker:
    """A broker that keeps what it is sent, or is down."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, object], str]] = []
        self.down = False

    def send(self, task: str, kwargs: dict[str, object], queue: str) -> None:
        if self.down:
            raise OperationalError("connection refused")
        self.sent.append((task, kwargs, queue))


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(outbox, "send", broker.send)
    monkeypatch.setattr(submitting, "send", broker.send)
    monkeypatch.setattr(submitting._Pause, "until", 0.0)
    return broker


def test_a_message_is_sent_once_and_marked(broker: Broker) -> None:
    message = enqueue(TASK, {"run": 7}, "steps", None)
    assert relay_batch().sent == 1
    assert relay_batch().sent == 0
    assert broker.sent == [(TASK, {"run": 7}, "steps")]
    message.refresh_from_db()
    assert message.sent_at is not None
    assert message.tries == 1


def test_a_broker_that_is_down_leaves_the_row_to_be_sent_later(broker: Broker) -> None:
    enqueue(TASK, {}, "plan", None)
    broker.down = True
    relayed = relay_batch()
    assert (relayed.sent, relayed.broker_down) == (0, True)
    assert waiting().count() == 1
    assert relay_all() == 0
    broker.down = False
    assert relay_all() == 1


def test_a_poison_message_blocks_nothing_and_says_why(broker: Broker) -> None:
    poison = enqueue("nobody.knows.this", {}, "plan", None)
    enqueue(TASK, {"n": 1}, "plan", None)
    relayed = relay_batch()
    assert (relayed.sent, relayed.failed) == (1, 1)
    poison.refresh_from_db()
    assert poison.sent_at is None
    assert "UnknownTaskError" in poison.last_error
    assert poison.tries == 1
    assert waiting().count() == 0


def test_a_delayed_message_waits_for_its_time(broker: Broker) -> None:
    enqueue(TASK, {}, "plan", None, delay=timedelta(minutes=5))
    assert relay_all() == 0
    assert broker.sent == []


def test_more_than_one_batch_is_relayed(broker: Broker) -> None:
    for number in range(205):
        enqueue(TASK, {"n": number}, "plan", None)
    assert relay_all() == 205
    assert [kwargs["n"] for _, kwargs, _ in broker.sent] == list(range(205))


def test_the_relay_is_woken_after_commit_only(
    broker: Broker, django_capture_on_commit_callbacks: Capture
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        enqueue(TASK, {}, "plan", None)
        assert broker.sent == []
    assert broker.sent == [("diagnostics.tasks.relay_outbox", {}, "fold")]


def test_a_broker_that_is_down_never_fails_the_commit(
    broker: Broker, django_capture_on_commit_callbacks: Capture
) -> None:
    broker.down = True
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        enqueue(TASK, {}, "plan", None)
    assert OutboxMessage.objects.count() == 1
    assert submitting.wake_relay() is False


def test_sent_messages_are_purged_after_a_day(broker: Broker) -> None:
    kept = enqueue(TASK, {}, "plan", None)
    gone = enqueue(TASK, {}, "plan", None)
    relay_all()
    gone.refresh_from_db()
    assert gone.sent_at is not None
    OutboxMessage.objects.filter(pk=gone.pk).update(sent_at=gone.sent_at - timedelta(hours=25))
    assert purge_sent() == 1
    assert OutboxMessage.objects.get() == kept


def test_an_unreachable_broker_answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submitting._Pause, "until", 0.0)
    monkeypatch.setattr(submitting, "send", _send_nowhere)
    assert submitting.wake_relay() is False


def _send_nowhere(task: str, kwargs: dict[str, object], queue: str) -> None:
    options = current_app.conf.broker_transport_options
    url = "redis+socket:///nonexistent/broker.sock"
    with current_app.connection_for_write(url, transport_options=options) as nowhere:
        current_app.send_task(task, kwargs=kwargs, connection=nowhere, retry=False)


@pytest.mark.slow
def test_c12_ten_thousand_delayed_messages_wait_in_rows_not_in_memory(broker: Broker) -> None:
    later = clock.now() + timedelta(hours=1)
    OutboxMessage.objects.bulk_create(
        OutboxMessage(task=TASK, queue="steps", kwargs={}, available_at=later)
        for _ in range(10_000)
    )
    relay_all()
    tracemalloc.start()
    try:
        assert relay_all() == 0
        kilobytes = tracemalloc.get_traced_memory()[1] // 1024
    finally:
        tracemalloc.stop()
    assert kilobytes < 200
    enqueue(TASK, {"run": 1}, "steps", None)
    assert relay_all() == 1
    assert broker.sent == [(TASK, {"run": 1}, "steps")]

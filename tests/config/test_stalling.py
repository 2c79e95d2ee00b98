"""A worker that takes no messages any more ends, and is started anew (C5)."""

import signal
import socket
import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery

from config import worker_watchdog
from config.celery import Failsoft, app, has_process
from config.worker_watchdog import Stall, count_waiting, report_alive, watch


def test_c5_messages_that_wait_for_a_worker_with_room_are_a_stall_in_time() -> None:
    stall = Stall(patience_seconds=30)
    assert not stall.is_overdue(0, waiting=3, free=1)
    assert not stall.is_overdue(29, waiting=3, free=1)
    assert stall.is_overdue(30, waiting=3, free=1)


@pytest.mark.parametrize(("waiting", "free"), [(0, 1), (3, 0)])
def test_an_empty_queue_and_a_busy_worker_are_no_stall(waiting: int, free: int) -> None:
    stall = Stall(patience_seconds=30)
    stall.is_overdue(0, waiting=3, free=1)
    assert not stall.is_overdue(31, waiting=waiting, free=free)
    assert not stall.is_overdue(60, waiting=3, free=1)


def test_a_message_taken_begins_the_patience_anew() -> None:
    stall = Stall(patience_seconds=30)
    stall.is_overdue(0, waiting=3, free=1)
    stall.note_message()
    assert not stall.is_overdue(31, waiting=3, free=1)


def test_a_stalled_worker_is_told_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    signals: list[int] = []
    ended = threading.Event()

    def kill(pid: int, number: int) -> None:
        signals.append(number)
        ended.set()

    monkeypatch.setattr("config.worker_watchdog.os.kill", kill)
    monkeypatch.setattr(worker_watchdog, "CHECK_SECONDS", 0.01)
    watch(Stall(patience_seconds=0.03), lambda: 1, lambda: 1)
    assert ended.wait(5)
    assert signals == [signal.SIGTERM]


def test_a_pool_has_a_process_once_one_of_them_is_up() -> None:
    first, second = object(), object()
    processes = SimpleNamespace(_pool=[first, second], _waiting_to_start={first, second})
    assert not has_process(SimpleNamespace(_pool=processes))
    processes._waiting_to_start.discard(second)
    assert has_process(SimpleNamespace(_pool=processes))
    # Threads, or no pool at all.
    assert has_process(SimpleNamespace(_pool=object()))


def test_a_process_of_a_pool_has_a_minute_to_start() -> None:
    # Celery's own four seconds are too few on a busy machine: no process would come up at all.
    assert app.conf.worker_proc_alive_timeout == 60


def test_waiting_messages_are_counted_in_all_queues(broker_url: str) -> None:
    app = Celery("counted", broker=broker_url)
    for queue in ("stall-a", "stall-b"):
        app.send_task("nobody", queue=queue)
    assert count_waiting(app, ["stall-a", "stall-b"]) == 2
    with app.connection_for_write() as broker:
        for queue in ("stall-a", "stall-b"):
            channel: Any = broker.default_channel
            channel.queue_purge(queue)
    assert count_waiting(app, ["stall-a", "stall-b"]) == 0


def test_c5_an_empty_queue_hides_no_full_one_beside_it(broker_url: str) -> None:
    app = Celery("beside", broker=broker_url)
    app.send_task("nobody", queue="stall-full")
    assert count_waiting(app, ["stall-empty", "stall-full", "stall-never"]) == 1
    with app.connection_for_write() as broker:
        channel: Any = broker.default_channel
        channel.queue_purge("stall-full")


@pytest.mark.slow
def test_a_broker_that_is_away_is_no_stall() -> None:
    app = Celery("away", broker="redis+socket:///nonexistent/broker")
    app.conf.broker_connection_timeout = 1
    assert count_waiting(app, ["plan"]) == 0


@pytest.mark.slow
def test_c5_a_broker_that_never_answers_does_not_hold_up_the_watchdog() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        app = Failsoft("silent", broker=f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        counted: Future[int] = Future()

        def count() -> None:
            counted.set_result(count_waiting(app, ["plan"]))

        threading.Thread(target=count, daemon=True).start()
        assert counted.result(timeout=30) == 0


def test_a_worker_reports_itself_alive_unless_messages_wait_in_vain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_watchdog, "REPORT_SECONDS", 0.01)
    noted, stall = threading.Event(), Stall(patience_seconds=30)
    stall.is_overdue(0, waiting=3, free=1)
    report_alive(stall, noted.set)
    assert not noted.wait(0.2)
    stall.note_message()
    assert noted.wait(10)

"""Beat goes on when the clock of its machine is set back, and waits idly for what is due."""

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from celery.schedules import schedule
from structlog.testing import capture_logs

from config.beat import SteadyScheduler
from config.celery import BEAT, Failsoft, TickStrategy, app, stall

FOLD = "diagnostics.tasks.fold_deltas"
SHORTEST = min(seconds for _, seconds in BEAT)


class Noting(SteadyScheduler):
    """Notes what it would queue."""

    sent: ClassVar[list[str]] = []

    def apply_entry(self, entry: Any, producer: object = None) -> None:
        self.sent.append(entry.name)


@pytest.fixture
def scheduler() -> Noting:
    Noting.sent.clear()
    return Noting(app)


def shift(scheduler: Noting, by: timedelta) -> None:
    for entry in scheduler.schedule.values():
        assert entry.last_run_at is not None
        entry.last_run_at += by


def test_no_task_waits_until_a_clock_that_was_set_back_has_caught_up(scheduler: Noting) -> None:
    scheduler.tick()
    shift(scheduler, timedelta(hours=2))
    scheduler._heap = None
    assert scheduler.tick() <= SHORTEST
    for entry in scheduler.schedule.values():
        assert entry.last_run_at is not None
        assert entry.last_run_at <= entry.default_now()


def test_every_task_is_due_after_a_start(scheduler: Noting) -> None:
    while scheduler.tick() == 0:
        pass
    assert sorted(scheduler.sent) == sorted(app.conf.beat_schedule)


def test_what_is_due_is_queued(scheduler: Noting) -> None:
    while scheduler.tick() == 0:
        pass
    scheduler.sent.clear()
    shift(scheduler, -timedelta(hours=2))
    scheduler._heap = None
    while scheduler.tick() == 0:
        pass
    assert set(scheduler.sent) == set(app.conf.beat_schedule)


def test_beat_needs_no_file_even_if_an_older_unit_names_one() -> None:
    scheduler = Noting(app, schedule_filename="/proc/schedule")
    scheduler.tick()
    scheduler.close()


def test_a_task_that_the_broker_does_not_take_is_one_line_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nowhere = Failsoft("test", broker="redis+socket:///nonexistent", set_as_current=False)
    nowhere.conf.broker_transport_options = app.conf.broker_transport_options
    beat = SteadyScheduler(nowhere)
    entry = beat.Entry(name="one", task="one", schedule=schedule(1), app=nowhere)
    with capture_logs() as lines:
        beat.apply_entry(entry)
    (line,) = lines
    assert line["setting"] == "BROKER_URL"
    assert "connecting to /nonexistent" in line["error"]


def test_it_sleeps_until_a_task_is_due(scheduler: Noting) -> None:
    ticks, end = 0, time.monotonic() + SHORTEST + 0.5
    while time.monotonic() < end:
        ticks += 1
        time.sleep(max(scheduler.tick(), 0))
    assert scheduler.sent
    assert ticks < 5 * len(scheduler.sent)


class Message:
    """A message, as a strategy sees it."""

    def __init__(self, headers: dict[str, object]) -> None:
        self.headers, self.delivery_info = headers, dict[str, object]()


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a worker does with a message of `fold_deltas`, at a time by its own steady clock."""
    done: list[str] = []
    monkeypatch.setattr("config.celery.default", lambda *_: lambda *_: done.append("run"))
    consumer = SimpleNamespace(connection_errors=())
    strategy = TickStrategy(app.tasks[FOLD], app, consumer)

    def take_at(seconds: float, **headers: object) -> str:
        monkeypatch.setattr("config.celery.time.monotonic", lambda: seconds)
        strategy(Message(headers), None, lambda *_: done.append("dropped"), None, [])
        return done.pop()

    return take_at


def test_no_message_of_beat_expires_by_a_clock() -> None:
    app.loader.import_default_modules()
    for entry in app.conf.beat_schedule.values():
        assert not {"expires", "eta", "countdown"} & set(entry.get("options", {}))
        strategy: object = app.tasks[entry["task"]].Strategy
        assert strategy is TickStrategy


def test_of_messages_of_beat_that_piled_up_one_runs_at_a_time(take: Callable[..., str]) -> None:
    taken = [take(0.01 * count, celery_beat_task=True) for count in range(700)]
    assert taken.count("run") == 3
    assert taken[0] == "run"


def test_messages_of_beat_that_come_in_time_all_run(take: Callable[..., str]) -> None:
    assert {take(seconds, celery_beat_task=True) for seconds in (0, 5, 8, 13, 20)} == {"run"}


def test_a_message_of_beat_that_comes_again_runs_at_any_time(take: Callable[..., str]) -> None:
    again = {"celery_beat_task": True, "redelivered": True}
    assert [take(0, celery_beat_task=True), take(1, **again), take(2, **again)] == ["run"] * 3


def test_a_message_that_something_else_sent_runs_at_any_time(take: Callable[..., str]) -> None:
    assert [take(0, celery_beat_task=True), take(0), take(0)] == ["run"] * 3


def test_c5_dropping_messages_is_consuming_them(take: Callable[..., str]) -> None:
    stall.is_overdue(0, waiting=1, free=1)
    take(0, celery_beat_task=True)
    take(0, celery_beat_task=True)
    assert not stall.is_suspected


NAMED = """
import sys
from config.celery import app
app.Beat(quiet=True).init_loader()
print({"agents.tasks", "diagnostics.models", "diagnostics.tasks", "plans.tasks"} & set(sys.modules))
"""


def test_beat_knows_tasks_by_name_and_loads_none_of_their_code() -> None:
    command = [sys.executable, "-c", NAMED]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
    app.loader.import_default_modules()
    for entry in app.conf.beat_schedule.values():
        assert entry["task"] in app.tasks


QUEUES_OF_TASKS = {
    "diagnostics.tasks.beat_heartbeat": "fold",
    "plans.tasks.reconcile_runs": "fold",
    "agents.tasks.reconcile_goals": "fold",
    "diagnostics.tasks.deliver_due": "notify",
    "diagnostics.tasks.deliver_again": "notify",
    "diagnostics.tasks.report_due": "report",
    "plans.tasks.advance_run": "steps",
    "agents.tasks.run_goal": "plan",
}


@pytest.mark.parametrize(("task", "queue"), QUEUES_OF_TASKS.items())
def test_c13_each_kind_of_task_goes_to_its_queue(task: str, queue: str) -> None:
    assert app.amqp.router.route({}, task)["queue"].name == queue

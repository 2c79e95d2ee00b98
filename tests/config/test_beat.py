"""Beat goes on when the clock of its machine is set back, and waits idly for what is due."""

import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from celery.schedules import schedule
from structlog.testing import capture_logs

from config.beat import SteadyScheduler
from config.celery import BEAT, Failsoft, app

SHORTEST = min(seconds for _, seconds in BEAT)


class Noting(SteadyScheduler):
    """Notes what it would queue."""

    sent: ClassVar[list[str]] = []

    def apply_entry(self, entry: Any, producer: object = None) -> None:
        self.sent.append(entry.name)


@pytest.fixture
def scheduler(tmp_path: Path) -> Noting:
    Noting.sent.clear()
    return Noting(app, schedule_filename=str(tmp_path / "schedule"))


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


def test_what_is_due_is_queued(scheduler: Noting) -> None:
    shift(scheduler, -timedelta(hours=2))
    while scheduler.tick() == 0:
        pass
    assert set(scheduler.sent) == set(app.conf.beat_schedule)


def test_a_task_that_the_broker_does_not_take_is_one_line_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = Failsoft("test", broker="redis+socket:///nonexistent", set_as_current=False)
    nowhere.conf.broker_transport_options = app.conf.broker_transport_options
    beat = SteadyScheduler(nowhere, schedule_filename=str(tmp_path / "schedule"))
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


def test_a_worker_whose_clock_is_half_a_minute_ahead_drops_no_task() -> None:
    for entry in app.conf.beat_schedule.values():
        assert entry["options"]["expires"] > entry["schedule"] + 30


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

"""A long queue is worked off message by message: rows that only wait are left alone (C3, C13)."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery
from kombu import Connection

from agents.cycle import running
from agents.goals import submission
from agents.goals.models import Goal
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.store import leases, outbox
from diagnostics.store.models import OutboxMessage
from diagnostics.store.outbox import relay_all
from diagnostics.tasks import mark_queue, ping_queue
from failsoft.plans.contract import TaskStatus
from plans.models.run import Run
from plans.runs import running as run_running
from plans.runs.submission import submit_run
from tests.agents.conftest import TASKS, Planner, let_time_pass

LEASE = timedelta(seconds=10)
FINISH = '{"kind": "finish", "answer": "Done."}'
STEP = {"step_id": "step_1", "tool": {"name": "echo", "args": {"text": "hi"}}}
GOALS = 150


class Broker:
    """The embedded broker, and workers that take messages from it one at a time."""

    def __init__(self, url: str) -> None:
        self.app = Celery("backlog", broker=url)
        self.sent: Counter[str] = Counter()
        self.client: Connection = self.app.connection_for_write()

    def send(self, task: str, kwargs: dict[str, Any], queue: str) -> None:
        self.sent[str(kwargs.get("goal_id") or kwargs.get("run_id") or task)] += 1
        self.app.send_task(task, kwargs=kwargs, queue=queue)

    def take(self, queue: str, most: int = 10**6) -> int:
        """Execute what waits in a queue, oldest first; return how many messages there were."""
        taken = 0
        channel: Any = self.client.default_channel
        while taken < most and (message := channel.basic_get(queue, no_ack=True)):
            task = TASKS.get(message.headers["task"], ping_queue)
            task(*message.payload[1].values())
            taken += 1
        return taken

    def flush(self) -> None:
        channel: Any = self.client.default_channel
        channel.client.flushall()


@pytest.fixture
def broker(broker_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    broker = Broker(broker_url)
    for module in (outbox, leases):
        monkeypatch.setattr(module, "send", broker.send)
    for module in (running, submission):
        monkeypatch.setattr(module, "MESSAGE_LEASE", LEASE)
    yield broker
    broker.flush()
    broker.client.release()
    broker.app.close()


def pass_a_tick(seconds: float) -> None:
    """Let the clock go on, and do what the scheduler asks for."""
    let_time_pass(seconds)
    relay_all()
    for queue in ("plan", "steps"):
        mark_queue(queue)
    running.reconcile_goals()
    run_running.reconcile_runs()


@pytest.mark.slow
def test_waiting_goals_get_one_message_each_however_long_they_wait(
    planner: Planner, broker: Broker
) -> None:
    planner.will_say(*[FINISH] * GOALS)
    goals = [planner.submit() for _ in range(GOALS)]
    for _ in range(40):
        pass_a_tick(5)
        broker.take("plan", 1)

    assert {broker.sent[str(goal.pk)] for goal in goals} == {1}
    assert OutboxMessage.objects.count() == GOALS
    assert Goal.objects.filter(status="completed").count() == 40


@pytest.mark.slow
def test_runs_and_steps_of_a_backlog_wait_for_their_own_message(
    project: Project, broker: Broker
) -> None:
    plan = {"steps": [STEP, {**STEP, "step_id": "step_2"}]}
    runs = [
        submit_run(project.pk, plan, f"c{n}", runner=runner)
        for n in range(10)
        for runner in ("inline", "distributed")
    ]
    relay_all()
    broker.take("steps", len(runs))
    for _ in range(60):
        pass_a_tick(5)

    # One for the run, one for each step of a distributed one.
    assert max(broker.sent[str(run.pk)] for run in runs) == 3
    for _ in range(3):
        relay_all()
        broker.take("steps")
    assert set(Run.objects.values_list("task_status", flat=True)) == {TaskStatus.COMPLETED}


def test_every_row_still_runs_after_the_broker_was_emptied(
    planner: Planner, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More is lost than one batch takes up.
    monkeypatch.setattr(leases, "BATCH", 10)
    planner.will_say(*[FINISH] * 24)
    for _ in range(12):
        planner.submit()
    run = submit_run(planner.project.pk, {"steps": [STEP]}, "c")
    pass_a_tick(1)
    broker.flush()
    for _ in range(12):
        planner.submit()

    for _ in range(int(75 / 5)):
        pass_a_tick(5)
        for queue in ("plan", "steps"):
            broker.take(queue)

    assert set(Goal.objects.values_list("status", flat=True)) == {"completed"}
    run.refresh_from_db()
    assert run.task_status == TaskStatus.COMPLETED


def test_a_mark_says_nothing_of_messages_that_the_relay_has_not_sent_yet(
    planner: Planner, broker: Broker
) -> None:
    planner.submit()
    let_time_pass(30)
    assert mark_queue("plan")
    broker.take("plan")
    assert running.reconcile_goals() == 0
    relay_all()
    let_time_pass(5)
    assert mark_queue("plan")
    planner.will_say(FINISH)
    assert broker.take("plan") == 2
    assert Goal.objects.get().status == "completed"


def test_a_queue_that_nobody_drains_gets_fewer_and_fewer_marks(
    project: Project, broker: Broker
) -> None:
    ping_queue("plan", clock.now().isoformat())
    sent = 0
    for _ in range(720):
        let_time_pass(5)
        sent += mark_queue("plan")
    assert 0 < sent < 120

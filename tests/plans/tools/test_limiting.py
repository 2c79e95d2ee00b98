"""A limit of calls holds over all workers, because it stands in rows."""

import threading
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.db.transaction import atomic

from diagnostics import clock
from diagnostics.accounts.models import Project
from failsoft.plans.execution import CallContext, ToolRefusedError, ToolTimeoutError
from plans.models.tool import ToolSlot
from plans.runs.submission import submit_run
from plans.tools import definition
from plans.tools.definition import holding_slot
from plans.tools.registry import UnboundedToolError, tool
from tests.plans.tools.test_registry import CountArgs

NOWHERE = CallContext()


def held() -> int:
    return ToolSlot.objects.filter(holder__isnull=False).count()


@pytest.mark.django_db(transaction=True)
def test_no_more_calls_than_the_limit_run_at_a_time() -> None:
    at_once: list[int] = []
    running = 0
    lock = threading.Lock()
    both_at_work = threading.Event()

    def call() -> None:
        nonlocal running
        with holding_slot("press", 2, 5, NOWHERE):
            with lock:
                running += 1
                at_once.append(running)
                if running == 2:
                    both_at_work.set()
            both_at_work.wait(10)
            time.sleep(0.02)
            with lock:
                running -= 1
        connection.close()

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(at_once), max(at_once), held()) == (6, 2, 0)


@pytest.mark.django_db
def test_a_turn_that_does_not_come_is_tool_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definition, "LONGEST_WAIT_SECONDS", 0.1)
    with (
        holding_slot("press", 1, 5, NOWHERE),
        pytest.raises(ToolRefusedError, match="limit of 1 call at a time") as refused,
        holding_slot("press", 1, 5, NOWHERE),
    ):
        pytest.fail("there is only one slot")
    assert refused.value.reason == "tool_busy"


@pytest.mark.django_db
def test_nobody_waits_beyond_the_deadline_of_the_run(project: Project) -> None:
    deadline = clock.now() - timedelta(seconds=1)
    plan = {"steps": [{"step_id": "step_1", "tool": "echo"}]}
    run = submit_run(project.pk, plan, None, deadline_at=deadline)
    began = time.monotonic()
    with (
        holding_slot("press", 1, 5, NOWHERE),
        pytest.raises(ToolRefusedError),
        holding_slot("press", 1, 5, CallContext(run_id=str(run.pk))),
    ):
        pytest.fail("the deadline is over")
    assert time.monotonic() - began < definition.LONGEST_WAIT_SECONDS / 2


@pytest.mark.django_db
def test_a_failed_call_gives_its_slot_back_and_an_abandoned_one_keeps_it() -> None:
    with pytest.raises(ValueError, match="x"), holding_slot("press", 1, 5, NOWHERE):
        raise ValueError("x")
    assert held() == 0
    with pytest.raises(ToolTimeoutError), holding_slot("press", 1, 5, NOWHERE):
        raise ToolTimeoutError("its function may still be at work")
    assert held() == 1


@pytest.mark.django_db
def test_the_slot_of_a_dead_worker_is_free_when_its_lease_is_over() -> None:
    past = clock.now() - timedelta(seconds=1)
    with holding_slot("press", 1, 5, NOWHERE):
        ToolSlot.objects.update(lease_until=past)
        with holding_slot("press", 1, 5, NOWHERE):
            assert held() == 1


@pytest.mark.django_db
def test_a_limit_that_was_raised_adds_slots() -> None:
    with holding_slot("press", 1, 5, NOWHERE), holding_slot("press", 2, 5, NOWHERE):
        assert held() == 2


@pytest.mark.django_db
def test_a_cancelled_run_does_not_wait() -> None:
    cancelled = CallContext(is_cancelled=lambda: True)
    with (
        holding_slot("press", 1, 5, NOWHERE),
        pytest.raises(ToolRefusedError),
        holding_slot("press", 1, 5, cancelled),
    ):
        pytest.fail("it was cancelled")


def test_a_tool_with_a_limit_needs_a_timeout() -> None:
    with pytest.raises(UnboundedToolError):
        tool("press", CountArgs, description="", max_concurrent=1)(lambda args: args)


@pytest.mark.django_db(transaction=True)
def test_a_call_that_was_made_succeeds_though_its_slot_cannot_be_given_back() -> None:
    with atomic(), holding_slot("press", 1, 5, NOWHERE):
        # What follows in this transaction raises InterfaceError.
        connection.close()

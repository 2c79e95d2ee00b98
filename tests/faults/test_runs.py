"""Runs of both runners on workers that are killed, restarted and cut off from the broker."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any
from uuid import UUID

import pytest

from tests import embedded
from tests.faults.fleet import VISIBILITY_SECONDS, Fleet, soon, started

pytestmark = pytest.mark.faults

RUNNERS = ("inline", "distributed")
RUNS, STEPS, KILLS = 20, 5, 5


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """One fleet for the whole file."""
    with embedded.throw_away_folder() as folder, started(folder) as fleet:
        yield fleet


def plan(tool: str, *names: str, **args: Any) -> dict[str, Any]:
    """A chain of steps that leave these names behind."""
    return {
        "steps": [
            {
                "step_id": f"step_{number}",
                "dependencies": [f"step_{number - 1}"] if number > 1 else [],
                "tool": {"name": tool, "args": {"name": name, **args}},
            }
            for number, name in enumerate(names, 1)
        ]
    }


def names(run: str) -> list[str]:
    """The names of a run's effects."""
    return [f"{run}-{number}" for number in range(STEPS)]


def statuses(fleet: Fleet, runs: list[UUID]) -> Counter[str]:
    """How runs have ended."""
    query = "SELECT task_status FROM plans_run WHERE id = ANY(%s)"
    return Counter(status for (status,) in fleet.ask(query, runs))


def states(fleet: Fleet, run: UUID) -> tuple[str, list[str | None]]:
    """A run's state and the reasons of its steps."""
    ((state,),) = fleet.ask("SELECT state FROM plans_run WHERE id = %s", run)
    query = "SELECT reason FROM plans_runstep WHERE run_id = %s ORDER BY position"
    return state, [reason for (reason,) in fleet.ask(query, run)]


def test_c3_killed_workers_lose_and_double_nothing(fleet: Fleet) -> None:
    chance = Random(3)
    plans = [
        (plan("keyed", *names(f"kill{number}"), before=0.1), RUNNERS[number % 2])
        for number in range(RUNS)
    ]
    runs = fleet.submit(*plans)
    for _ in range(KILLS):
        time.sleep(1.2)
        fleet.kill_child("worker", chance)
    fleet.await_end(runs)
    assert statuses(fleet, runs) == {"COMPLETED": RUNS}
    effects = Counter(fleet.noted("effects", "kill"))
    assert len(effects) == RUNS * STEPS
    assert set(effects.values()) == {1}


@pytest.mark.parametrize("runner", RUNNERS)
def test_c1_a_step_longer_than_the_visibility_timeout_happens_once(
    fleet: Fleet, runner: str
) -> None:
    long = plan("unkeyed", f"long-{runner}", after=3 * VISIBILITY_SECONDS)
    runs = fleet.submit((long, runner))
    fleet.await_end(runs)
    assert statuses(fleet, runs) == {"COMPLETED": 1}
    assert fleet.noted("effects", "long-" + runner) == ["long-" + runner]


@pytest.mark.parametrize("runner", RUNNERS)
def test_c4_a_step_that_kills_its_process_starts_three_times_and_ends_as_poison(
    fleet: Fleet, runner: str
) -> None:
    deadly = plan("suicide", f"deadly-{runner}")
    deadly["steps"].append({"step_id": "beside", "tool": "echo"})
    runs = fleet.submit((deadly, runner))
    fleet.await_end(runs)
    assert len(fleet.noted("deaths", f"deadly-{runner}")) == 3
    assert states(fleet, runs[0]) == ("poison", ["poison", None])


@pytest.mark.parametrize("runner", RUNNERS)
def test_c17_a_call_that_was_begun_and_cannot_be_repeated_is_not_repeated(
    fleet: Fleet, runner: str
) -> None:
    name = f"pay-{runner}"
    # Long enough to be killed in: nothing waits for its end.
    runs = fleet.submit((plan("unkeyed", name, after=20), runner))
    soon(lambda: bool(fleet.noted("effects", name)))
    for pid in fleet.children("worker"):
        os.kill(pid, signal.SIGKILL)
    fleet.await_end(runs)
    assert states(fleet, runs[0]) == ("ended", ["unknown_outcome"])
    assert fleet.noted("effects", name) == [name]


@pytest.mark.parametrize("runner", RUNNERS)
def test_c17_a_call_that_can_be_repeated_gets_the_same_key(fleet: Fleet, runner: str) -> None:
    name = f"keyed-{runner}"
    runs = fleet.submit((plan("keyed", name, after=5), runner))
    soon(lambda: bool(fleet.noted("effects", name)))
    for pid in fleet.children("worker"):
        os.kill(pid, signal.SIGKILL)
    fleet.await_end(runs)
    assert statuses(fleet, runs) == {"COMPLETED": 1}
    assert fleet.noted("effects", name) == [name]
    calls = fleet.noted("calls", str(runs[0]))
    assert len(calls) == 2
    assert set(calls) == {f"{runs[0]}:1:1"}


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_cancelled_run_reaches_the_tool_that_is_being_called(fleet: Fleet, runner: str) -> None:
    name = f"patient-{runner}"
    runs = fleet.submit((plan("patient", name, "never", after=50), runner))
    soon(lambda: bool(fleet.noted("effects", name)))
    fleet.cancel(runs[0])
    fleet.await_end(runs, seconds=40)
    assert statuses(fleet, runs) == {"FAILED": 1}
    assert fleet.noted("effects", "never") == []


def test_c14_restarted_workers_hand_their_runs_on(fleet: Fleet) -> None:
    plans = [
        (plan("unkeyed", *names(f"roll{number}"), before=0.2), RUNNERS[number % 2])
        for number in range(8)
    ]
    runs = fleet.submit(*plans)
    for _ in range(2):
        time.sleep(1)
        fleet.stop_worker("worker")
        fleet.start_worker("worker", "plan,steps", 2)
    fleet.await_end(runs)
    assert statuses(fleet, runs) == {"COMPLETED": 8}
    assert set(Counter(fleet.noted("effects", "roll")).values()) == {1}


def test_c9_runs_submitted_while_the_broker_is_away_are_run(fleet: Fleet) -> None:
    fleet.stop_broker()
    runs = fleet.submit(*((plan("unkeyed", f"away-{runner}"), runner) for runner in RUNNERS))
    time.sleep(1)
    fleet.start_broker()
    fleet.await_end(runs)
    assert statuses(fleet, runs) == {"COMPLETED": 2}
    assert sorted(fleet.noted("effects", "away")) == ["away-distributed", "away-inline"]


def test_s2_47_every_case_has_the_same_results_on_workers(fleet: Fleet) -> None:
    said = fleet.call("from tests.services.agreeing import main; main()")
    assert "differs" not in said
    assert said.startswith("compared ")


def test_nothing_is_left_over(fleet: Fleet) -> None:
    leases = (
        "SELECT count(*) FROM plans_run WHERE lease_until IS NOT NULL"
        " UNION ALL SELECT count(*) FROM plans_runstep WHERE lease_until IS NOT NULL"
    )
    assert fleet.ask(leases) == [(0,), (0,)]
    waiting = "SELECT 1 FROM diagnostics_outboxmessage WHERE sent_at IS NULL"
    soon(lambda: not fleet.ask(waiting), 30)

"""The time budget of a goal: what counts as its time, and what it says when that is over."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from agents.goals.state import OUT_OF_TIME
from agents.goals.submission import answer_goal
from diagnostics.store.models import OutboxMessage
from plans.tools import registry
from tests.agents.conftest import ASK, FINISH, PLAN, TASKS, Planner, Record, let_time_pass, work_off

QUICK = {"step_id": "step_1", "tool": {"name": "echo", "args": {"text": "hi"}}}
BUDGET = {"seconds": 60}
LONG = 1_000


class Nothing(BaseModel):
    """No arguments."""


@pytest.fixture
def linger() -> Iterator[dict[str, Any]]:
    """A plan whose first step takes longer than the budget."""
    registry.tool("linger", Nothing, description="Linger.", idempotent=True)(
        lambda args: let_time_pass(LONG)
    )
    first = {"step_id": "step_1", "tool": {"name": "linger", "args": {}}}
    second = {**QUICK, "step_id": "step_2", "dependencies": ["step_1"]}
    yield {"steps": [first, second]}
    del registry._tools["linger"]


def take_message() -> None:
    """Do what the oldest message asks for."""
    message = OutboxMessage.objects.earliest("available_at", "pk")
    message.delete()
    TASKS[message.task](*message.kwargs.values())


def says_that_time_ran_out(record: Record) -> bool:
    spent = (record["execution_eval"] or {}).get("spent")
    return (
        (record["status"], record["outcome"]) == ("failed", "budget_exhausted")
        and record["user_text"].startswith(OUT_OF_TIME)
        and spent == "seconds"
    )


@pytest.mark.parametrize("max_iterations", [1, 3])
def test_a_goal_with_a_plan_of_its_own_says_that_its_time_ran_out(
    planner: Planner, linger: dict[str, Any], max_iterations: int
) -> None:
    record = planner.finish(
        planner.submit(
            mode="plan",
            plan=linger,
            budget=BUDGET,
            max_iterations=max_iterations,
            runner="distributed",
        )
    )

    assert says_that_time_ran_out(record), record
    assert record["cycle"] == min(max_iterations, 2)
    assert record["results"][1]["reason"] == "deadline_reached"


def test_a_planned_goal_says_that_its_time_ran_out(
    planner: Planner, linger: dict[str, Any]
) -> None:
    planner.will_say({"text": json.dumps(linger), "repeat": True})
    goal = planner.submit(mode="plan", budget=BUDGET, runner="distributed")

    assert says_that_time_ran_out(planner.finish(goal))


def test_a_plan_that_waits_for_a_worker_keeps_its_time(planner: Planner) -> None:
    planner.will_say(PLAN)
    goal = planner.submit(mode="plan", budget=BUDGET)
    let_time_pass(LONG)
    take_message()
    let_time_pass(LONG)
    record = planner.finish(goal)

    assert (record["status"], record["outcome"]) == ("completed", "ok_first")


def test_a_goal_that_waits_after_its_plan_keeps_its_time(planner: Planner) -> None:
    failing = {"steps": [{**QUICK, "tool": {"name": "fail", "args": {}}}]}
    goal = planner.submit(mode="plan", plan=failing, budget=BUDGET, max_iterations=2)
    take_message()
    take_message()
    let_time_pass(LONG)
    take_message()
    record = planner.finish(goal)

    assert record["cycle"] == 2
    assert record["outcome"] != "budget_exhausted"
    assert record["budget"].keys() == {"calls", "tokens", "seconds", "waited_seconds"}
    assert record["budget"]["waited_seconds"] == pytest.approx(LONG, abs=60)


def test_an_answered_goal_that_waits_for_a_worker_keeps_its_time(planner: Planner) -> None:
    planner.will_say(ASK, FINISH)
    goal = planner.submit(budget=BUDGET)
    work_off()
    let_time_pass(LONG)
    goal.refresh_from_db()
    answer_goal(goal, {"text": "Rome"})
    let_time_pass(LONG)

    assert planner.finish(goal)["status"] == "completed"

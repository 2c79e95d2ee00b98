"""The goals that are told in full keep every rule of real ones."""

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from random import Random

import pytest

from agents.demo.events import MARK, events_of
from agents.demo.goal_plots import PLOTS
from agents.demo.goals import GoalStory, goals
from agents.goals.state import PlanningOutcome, Status
from failsoft.plans.results import validate_results
from failsoft.plans.validation import validate_payload
from failsoft.retry.answers import PlannerSchema

NOW = datetime(2026, 11, 21, 22, 30, tzinfo=UTC)
TOLD = list(goals(NOW, Random(7)))
every_goal = pytest.mark.parametrize("goal", TOLD, ids=lambda goal: goal.correlation_id)


def test_a_few_dozen_goals_end_in_every_way_that_is_built() -> None:
    assert len(TOLD) == len(PLOTS) >= 30
    assert {goal.outcome for goal in TOLD} == {
        PlanningOutcome.OK_FIRST,
        PlanningOutcome.REPAIRED,
        PlanningOutcome.DEGRADED,
        PlanningOutcome.PROVIDER_FAILED,
        PlanningOutcome.CANCELLED,
    }
    statuses = Counter(
        cycle.run.meta["task_status"] for goal in TOLD for cycle in goal.cycles if cycle.run
    )
    assert set(statuses) == {"COMPLETED", "FAILED", "PARTIAL"}
    assert max(len(goal.cycles) for goal in TOLD) == 3


def test_ids_are_unique_and_carry_the_mark() -> None:
    ids = [goal.id for goal in TOLD]
    ids += [cycle.run.id for goal in TOLD for cycle in goal.cycles if cycle.run]
    assert len(set(ids)) == len(ids)
    assert all(item.bytes.endswith(MARK) for item in ids)


@every_goal
def test_payloads_and_results_keep_the_contract(goal: GoalStory) -> None:
    for run in (cycle.run for cycle in goal.cycles if cycle.run):
        assert validate_payload(run.payload) == []
        assert validate_results(run.rows) == []
        assert len(run.times) == len(run.rows) - 1


@every_goal
def test_a_goal_has_ended_and_says_so(goal: GoalStory) -> None:
    assert goal.state.status.is_terminal
    assert goal.created_at < goal.ended_at < NOW
    assert goal.message.text
    assert goal.state.next_user_question is None


@every_goal
def test_cycles_and_calls_follow_each_other(goal: GoalStory) -> None:
    calls = [call for cycle in goal.cycles for call in cycle.ladder.calls]
    for earlier, later in pairwise(calls):
        assert earlier.ended_at <= later.called_at
    for number, cycle in enumerate(goal.cycles, start=1):
        assert cycle.ladder.cycle == number


@every_goal
def test_degraded_goals_carry_the_documented_error(goal: GoalStory) -> None:
    ended = [event.name for event in events_of(goal.cycles[-1].ladder)][-1]
    if goal.outcome is not PlanningOutcome.DEGRADED:
        assert goal.state.last_validation_error is None
        return
    node = goal.line.node
    assert ended == f"graph.{node}.degraded"
    assert goal.state.status is Status.FAILED
    assert goal.state.last_validation_error == {
        "reason": f"{node}_parse_failed",
        "attempts": 2,
        "schema": (PlannerSchema.PLAN if node == "plan" else PlannerSchema.NEXT_STEP).value,
        "provider": goal.line.provider,
        "model": goal.line.model,
    }


def test_the_same_seed_and_moment_tell_the_same_goals() -> None:
    assert list(goals(NOW, Random(7))) == TOLD

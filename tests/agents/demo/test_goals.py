"""The goals that are told in full keep every rule of real ones."""

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from random import Random

import pytest

from agents.demo.events import MARK, events_of
from agents.demo.goals import GoalStory, goals
from agents.demo.story import STORY
from agents.goals.state import PlanningOutcome, Status
from failsoft.plans.results import validate_results
from failsoft.plans.validation import validate_payload
from failsoft.retry.answers import PlannerSchema
from plans.models.run import RunStep

NOW = datetime(2026, 11, 21, 22, 30, tzinfo=UTC)
STORIES = list(goals(NOW, Random(7), 5))
every_goal = pytest.mark.parametrize("story", STORIES, ids=lambda item: item.goal.correlation_id)


def test_a_few_dozen_goals_end_in_every_way_that_is_built() -> None:
    assert len(STORIES) == len(STORY.plots) >= 30
    assert {story.goal.outcome for story in STORIES} == {
        PlanningOutcome.OK_FIRST,
        PlanningOutcome.REPAIRED,
        PlanningOutcome.DEGRADED,
        PlanningOutcome.PROVIDER_FAILED,
        PlanningOutcome.CANCELLED,
    }
    statuses = Counter(run.task_status for story in STORIES for run in story.runs)
    assert set(statuses) == {"COMPLETED", "FAILED", "PARTIAL"}
    assert max(len(story.ladders) for story in STORIES) == 3


def test_ids_are_unique_and_carry_the_mark() -> None:
    ids = [story.goal.id for story in STORIES]
    ids += [run.id for story in STORIES for run in story.runs]
    assert len(set(ids)) == len(ids)
    assert all(item.bytes.endswith(MARK) for item in ids)


@every_goal
def test_payloads_and_results_keep_the_contract(story: GoalStory) -> None:
    for run in story.runs:
        assert validate_payload(run.payload) == []
        steps = [step for step in story.steps if step.run_id == run.pk]
        assert validate_results([*map(result_of, steps), run.meta]) == []
        assert len(steps) == len(run.payload["steps"])


def result_of(step: RunStep) -> dict[str, object]:
    names = ("step_id", "tool", "ok", "skipped", "reason", "error", "output")
    return {name: getattr(step, name) for name in names}


@every_goal
def test_a_goal_has_ended_and_says_so(story: GoalStory) -> None:
    goal = story.goal
    assert Status(goal.status).is_terminal
    assert goal.ended_at is not None
    assert goal.created_at < goal.ended_at < NOW
    assert goal.user_text
    assert goal.next_user_question is None


@every_goal
def test_cycles_and_calls_follow_each_other(story: GoalStory) -> None:
    calls = [call for ladder in story.ladders for call in ladder.calls]
    for earlier, later in pairwise(calls):
        assert earlier.ended_at <= later.called_at
    assert [ladder.cycle for ladder in story.ladders] == [*range(1, len(story.ladders) + 1)]


@every_goal
def test_degraded_goals_carry_the_documented_error(story: GoalStory) -> None:
    goal, node = story.goal, story.series.node
    ended = [event.name for event in events_of(story.ladders[-1])][-1]
    if goal.outcome != PlanningOutcome.DEGRADED:
        assert goal.last_validation_error is None
        return
    assert ended == f"graph.{node}.degraded"
    assert goal.status == Status.FAILED
    assert goal.last_validation_error == {
        "reason": f"{node}_parse_failed",
        "attempts": 2,
        "schema": (PlannerSchema.PLAN if node == "plan" else PlannerSchema.NEXT_STEP).value,
        "provider": story.series.provider,
        "model": story.series.model,
    }


def test_the_same_seed_and_moment_tell_the_same_goals() -> None:
    again = list(goals(NOW, Random(7), 5))
    assert [fields_of(story) for story in again] == [fields_of(story) for story in STORIES]


def fields_of(story: GoalStory) -> list[dict[str, object]]:
    rows = (story.goal, *story.attempts, *story.runs, *story.steps)
    return [{name: value for name, value in vars(row).items() if name != "_state"} for row in rows]

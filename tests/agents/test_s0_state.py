"""S0-13 to S0-22: the state of a goal whose planner gave nothing usable."""

import json

import pytest

from agents.goals.models import Goal
from agents.goals.state import MAX_ANSWER_CHARACTERS
from agents.goals.submission import answer_goal
from tests.agents.conftest import ASK, CALL_ECHO, FINISH, Planner, Record, work_off

FORBIDDEN_IN_EVALUATION = ("retry", "try again", "action", "user", "rephrase", "?")


@pytest.fixture
def failed(planner: Planner) -> Record:
    """The record of a goal that got nothing but garbage."""
    return planner.run("not json", "still not")


def test_s0_13_status_is_failed(failed: Record) -> None:
    assert failed["status"] == "failed"


def test_s0_14_the_phase_is_plan(failed: Record) -> None:
    assert failed["pdca_phase"] == "plan"


def test_s0_15_the_reason_is_verbatim(failed: Record) -> None:
    assert failed["last_validation_error"]["reason"] == "next_step_parse_failed"


@pytest.mark.parametrize("max_attempts", [1, 2, 3])
def test_s0_16_attempts_are_those_that_were_made(planner: Planner, max_attempts: int) -> None:
    record = planner.run({"text": "no", "repeat": True}, retry={"max_attempts": max_attempts})

    assert record["last_validation_error"]["attempts"] == max_attempts


def test_s0_17_the_schema_is_named(failed: Record) -> None:
    assert failed["last_validation_error"]["schema"] == "NextStepProposal"


@pytest.mark.parametrize(("name", "shown"), [("fake", "fake"), ("", None)])
def test_s0_18_the_provider_is_a_name_or_null(
    planner: Planner, name: str, shown: str | None
) -> None:
    planner.language_model.provider.name = name
    planner.language_model.provider.save()

    record = planner.run("no", "no")

    assert record["last_validation_error"]["provider"] == shown
    assert {event["provider"] for event in record["events"]} == {shown}


@pytest.mark.parametrize(("name", "shown"), [("fake-1", "fake-1"), ("", None)])
def test_s0_19_the_model_is_a_name_or_null(planner: Planner, name: str, shown: str | None) -> None:
    planner.language_model.name = name
    planner.language_model.save()

    record = planner.run("no", "no")

    assert record["last_validation_error"]["model"] == shown
    assert {event["model"] for event in record["events"]} == {shown}


def test_s0_20_the_evaluation_asks_nothing_of_the_user(failed: Record) -> None:
    said = json.dumps(failed["execution_eval"]).lower()

    assert failed["execution_eval"]["degraded"] is True
    assert not [word for word in FORBIDDEN_IN_EVALUATION if word in said]


def test_s0_21_a_stale_question_is_gone(planner: Planner) -> None:
    planner.will_say("not json", "still not")
    goal = planner.submit()
    Goal.objects.filter(pk=goal.pk).update(next_user_question="Which city?")

    record = planner.finish(goal)

    assert record["status"] == "failed"
    assert record["next_user_question"] is None


def test_s0_21_a_question_of_an_earlier_cycle_is_gone(planner: Planner) -> None:
    planner.will_say(ASK, "not json", "still not")
    goal = planner.submit()
    work_off()
    answer_goal(goal, {"text": "Oslo"})

    record = planner.finish(goal)

    assert record["status"] == "failed"
    assert record["next_user_question"] is None


def test_s0_22_only_a_valid_question_waits_for_the_user(planner: Planner) -> None:
    record = planner.run(ASK)

    assert record["status"] == "waiting_user"
    assert record["next_user_question"] == "Which city?"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"text": "Oslo"}, "answered: Oslo"),
        ({"confirmed": True}, "answered: yes, confirmed"),
        ({"text": "x" * (MAX_ANSWER_CHARACTERS - 5) + " Oslo"}, "x Oslo"),
        ({"secret": "env:CITY_TOKEN"}, "answered: the secret is kept at env:CITY_TOKEN"),
    ],
)
def test_s0_22_the_goal_resumes_with_the_answer(
    planner: Planner, answer: dict[str, object], told: str
) -> None:
    planner.will_say(ASK, CALL_ECHO, FINISH)
    goal = planner.submit()
    work_off()

    answer_goal(goal, answer)
    record = planner.finish(goal)

    assert told in planner.prompts[1]
    assert record["status"] == "completed"
    assert record["user_text"] == "All done."

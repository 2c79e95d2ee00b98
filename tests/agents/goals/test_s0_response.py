"""S0-23 to S0-27, S0-52, S0-61: what a person reads when planning failed."""

import re

import pytest

from agents.goals.state import PlanningOutcome, Status, TaskState, respond
from failsoft.retry.answers import PlannerSchema
from tests.agents.conftest import Planner

INTERROGATIVES = "what which who whom whose when where why how can could would should do did is are"
BLAME = ("your request", "rephrase", "you provided", "invalid", "unclear", "you ")
SLOTS = ("please", "provide", "enter", "specify", "tell me", "reply", "input")
FORMATS = ("json", "format", "schema", "syntax", "parse")
REFERENCE = "run-8842"


def _texts() -> list[str]:
    degraded = TaskState().degraded(PlannerSchema.NEXT_STEP, 2, "fake", "fake-1")
    states = [
        (degraded, PlanningOutcome.DEGRADED),
        (TaskState().degraded(PlannerSchema.PLAN, 3, None, None), PlanningOutcome.DEGRADED),
        (TaskState().stopped("timeout"), PlanningOutcome.PROVIDER_FAILED),
        (TaskState().stopped("budget_exhausted"), PlanningOutcome.BUDGET_EXHAUSTED),
        (TaskState().unfinished({"complete": False}), PlanningOutcome.OK_FIRST),
        (TaskState().unfinished({"reason": "poison"}), None),
    ]
    texts = [respond(state, outcome, REFERENCE).text for state, outcome in states]
    return list(dict.fromkeys(texts))


every_failure = pytest.mark.parametrize("text", _texts())


def test_s0_23_a_failed_goal_tells_of_an_internal_planning_error(planner: Planner) -> None:
    record = planner.run("no", "no")

    assert "internal planning error" in record["user_text"]
    assert record["correlation_id"] in record["user_text"]


@every_failure
def test_s0_24_the_text_asks_nothing(text: str) -> None:
    assert not set("?¿") & set(text)
    assert text.split()[0].lower() not in INTERROGATIVES.split()


def test_s0_25_the_text_says_internal_and_that_diagnostics_were_recorded() -> None:
    state = TaskState().degraded(PlannerSchema.NEXT_STEP, 2, None, None)
    text = respond(state, PlanningOutcome.DEGRADED, REFERENCE).text

    assert "internal" in text
    assert re.search(r"[Dd]iagnostics were (logged|recorded)", text)


@every_failure
def test_s0_26_the_text_blames_nobody(text: str) -> None:
    assert not [word for word in BLAME if word in text.lower()]


@every_failure
def test_s0_27_the_text_says_no_word_about_formats(text: str) -> None:
    assert not [word for word in FORMATS if word in text.lower()]


@every_failure
def test_s0_61_the_text_fills_no_slot(text: str) -> None:
    assert not [word for word in SLOTS if word in text.lower()]


@pytest.mark.parametrize("question", [None, "", "Which city?", "?" * 1000, "\x00"])
def test_s0_52_a_failed_goal_ignores_the_question_field(question: str | None) -> None:
    state = TaskState().degraded(PlannerSchema.NEXT_STEP, 2, "fake", "fake-1")
    stale = state.model_copy(update={"next_user_question": question})

    assert respond(stale, PlanningOutcome.DEGRADED, REFERENCE) == respond(
        state, PlanningOutcome.DEGRADED, REFERENCE
    )


def test_help_is_apart_and_states(planner: Planner, client: object) -> None:
    record = planner.run("no", "no")

    assert len(record["help"]) >= 2
    assert all(statement.endswith(".") for statement in record["help"])
    assert any("/help/patterns/" in statement for statement in record["help"])


def test_a_failed_goal_never_says_that_it_was_paused() -> None:
    failed = [text for text in _texts() if "paused" in text.lower()]

    assert failed == []
    assert respond(TaskState(status=Status.CANCELLED), PlanningOutcome.CANCELLED, REFERENCE).text

"""S1: all retries failed: what a program and a person are told, and the stub."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents.badges import outcome_badge
from agents.console.goal_actions import PATTERNS
from agents.goals.state import PATTERNS_PATH
from failsoft.plans.validation import validate_payload
from failsoft.retry.stubs import STUB_TITLE
from tests.agents.conftest import PLAN, Planner, Record, events_named

PROSE = "Of course! First I would say hello."
SNAPSHOT = Path(__file__).parent / "final_error.txt"


def fail(planner: Planner, **order: Any) -> Record:
    """A goal whose attempts are all invalid."""
    order = {"goal": "Say hello", "mode": "plan", "correlation_id": "case-7"} | order
    return planner.run({"text": PROSE, "repeat": True}, **order)


def stub(planner: Planner, goal: str = "Reach the moon", **order: Any) -> Record:
    """The same with a stub."""
    return fail(planner, goal=goal, retry={"use_stub_fallback": True}, **order)


def test_s1_20_and_s1_52_and_s1_60_the_final_error_is_clear_and_always_the_same(
    planner: Planner,
) -> None:
    record = fail(planner)

    told = "\n".join([record["user_text"], *record["help"]])
    assert told == SNAPSHOT.read_text(encoding="utf-8").rstrip("\n")


def test_s1_21_and_s1_60_simpler_phrasing_is_suggested_as_a_statement(planner: Planner) -> None:
    advice = fail(planner)["help"][0]

    assert advice.startswith("Shorter goals with one outcome")
    assert "?" not in advice


def test_s1_22_and_s1_52_and_s1_60_the_examples_that_are_named_are_there(
    planner: Planner, client: Client
) -> None:
    linked = re.findall(r"/[\w/]+/", fail(planner)["help"][1])

    assert linked == [PATTERNS_PATH]
    page = client.get(linked[0])
    assert page.status_code == 200
    shown = unescape(page.content.decode())
    examples = [text for pattern in PATTERNS["patterns"] for text in pattern["examples"]]
    assert len(examples) >= len(PATTERNS["patterns"]) > 0
    assert [example for example in examples if example not in shown] == []


def test_s1_80_and_s1_90_all_failed_is_plan_generation_failed(planner: Planner) -> None:
    error = fail(planner, retry={"max_retries": 3})["error"]

    assert error["code"] == "PlanGenerationFailed"
    assert error["attempts"] == 3
    assert error["last_error"]["type"] == "not_json"
    assert error["last_error"]["errors"][0]["message"].startswith("expected ")


@pytest.mark.parametrize("replies", [[PLAN], [PROSE, PLAN]])
def test_s1_90_a_plan_that_was_found_leaves_no_error(planner: Planner, replies: list[str]) -> None:
    record = planner.run(*replies, goal="Say hello", mode="plan")

    assert record["error"] is None


def test_s1_40_and_s1_42_and_s1_64_the_stub_is_valid_and_runs_to_its_end(planner: Planner) -> None:
    record = stub(planner)

    assert validate_payload(record["plan"], strict=True, known_tools={"echo"}) == []
    assert record["results"][-1]["task_status"] == "COMPLETED"
    assert record["results"][0]["output"] == {"text": STUB_TITLE}


def test_s1_41_a_known_goal_gets_the_stub_of_its_template(planner: Planner) -> None:
    record = stub(planner, goal="Greet Ada by name.")

    assert record["results"][0]["output"] == {"text": "Hello Ada."}


def test_s1_41_a_stub_keeps_to_the_tools_of_its_goal(planner: Planner) -> None:
    record = stub(planner, goal="Greet Ada by name.", tools=["echo"])

    assert record["results"][0]["output"] == {"text": STUB_TITLE}


def test_s1_64_and_s1_91_a_stub_is_degraded_and_says_so_everywhere(planner: Planner) -> None:
    record = stub(planner)

    (event,) = events_named(record, "degraded")
    assert event["status"] == "stubbed"
    assert events_named(record, "succeeded") == []
    assert (record["outcome"], record["source"]) == ("stubbed", "stub")
    assert outcome_badge(record["outcome"]) == ("bad", "Stub plan, degraded")
    assert "a stub plan ran" in record["user_text"]


def test_s1_64_a_plan_step_by_step_has_a_stub_too(planner: Planner) -> None:
    record = stub(planner, mode="next_step")

    assert (record["status"], record["outcome"]) == ("completed", "stubbed")

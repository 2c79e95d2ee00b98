"""Stand-in plans: known patterns, the general one, and what they may never do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.plans.execution import Seams, execute
from failsoft.plans.validation import validate_payload
from failsoft.retry.stubs import MAX_PAUSE_SECONDS, STUB_TITLE, TEMPLATES, stub_plan
from plans.tools.registry import call_tool, registered_tools

KNOWN = [
    # the goal, the tools called, the output of the last step
    ('From {"total": 42, "currency": "EUR"} take the total.', ["json_select"], {"value": 42}),
    ('from {"a": {"b": 1}} take the field a', ["json_select"], {"value": {"b": 1}}),
    ("Greet Ada by name.", ["template"], {"text": "Hello Ada."}),
    ("greet Mary Ann!", ["template"], {"text": "Hello Mary Ann."}),
    ("Wait 0 seconds.", ["sleep"], {"slept_seconds": 0.0}),
    ("Echo the word hello.", ["echo"], {"text": "hello"}),
    ("Echo red, then green, and then blue.", ["echo", "echo", "echo"], {"text": "blue"}),
    ("Say $5 is enough", ["echo"], {"text": "$5 is enough"}),
    ("Say $step_9.output", ["echo"], {"text": "$step_9.output"}),
    ('From {"a": "$step_9.output"} take a', ["json_select"], {"value": "$step_9.output"}),
]  # fmt: skip
UNKNOWN = [
    "",
    "Plan the migration of the company.",
    'From {"total": 42 take the total.',
    'From {"total": 42} take the name.',
    "From {} take the total.",
    "Fetch https://example.com and echo it.",
]


def run(plan: dict[str, Any]) -> tuple[str, Any]:
    """Run a plan with the real tools; give its status and the last step's output."""
    rows = execute(plan, Seams(call_tool))
    return rows[-1]["task_status"], rows[-2].get("output")


@pytest.mark.parametrize(("goal", "tools", "output"), KNOWN)
def test_s1_41_a_goal_of_a_known_pattern_gets_the_plan_of_its_template(
    goal: str, tools: list[str], output: object
) -> None:
    plan = stub_plan(goal)

    assert [step["tool"]["name"] for step in plan["steps"]] == tools
    assert run(plan) == ("COMPLETED", output)


@pytest.mark.parametrize("goal", UNKNOWN)
def test_s1_40_any_other_goal_gets_the_general_plan(goal: str) -> None:
    assert stub_plan(goal) == stub_plan()
    assert run(stub_plan(goal)) == ("COMPLETED", {"text": STUB_TITLE})


@pytest.mark.parametrize("goal", [*(row[0] for row in KNOWN), *UNKNOWN])
def test_s1_40_and_s1_42_every_stub_is_valid_and_without_side_effects(goal: str) -> None:
    plan = stub_plan(goal)
    tools = registered_tools()

    assert validate_payload(plan, strict=True, known_tools=set(tools)) == []
    called = [tools[step["tool"]["name"]] for step in plan["steps"]]
    assert not any(tool.side_effects for tool in called)
    assert "http_get" not in {tool.name for tool in called}


@pytest.mark.parametrize("number", ["NaN", "1e999"])
def test_s1_42_a_goal_with_a_number_that_is_not_finite_gets_the_general_plan(number: str) -> None:
    assert stub_plan(f'from {{"a": {number}}} take a') == stub_plan()


@given(st.text(max_size=300) | st.sampled_from(["say ", "greet "]).flatmap(
    lambda start: st.text(max_size=200).map(start.__add__)))  # fmt: skip
def test_s1_42_whatever_the_goal_its_stub_is_valid_and_completes(goal: str) -> None:
    plan = stub_plan(goal)

    assert validate_payload(plan, strict=True, known_tools=set(registered_tools())) == []
    assert run(plan)[0] == "COMPLETED"


def test_a_template_calls_only_tools_the_goal_may_use() -> None:
    assert stub_plan("Greet Ada", tools={"echo"}) == stub_plan()
    assert stub_plan("Greet Ada", tools={"template"}) == stub_plan("Greet Ada")


def test_a_stand_in_never_holds_a_worker() -> None:
    (step,) = stub_plan("Wait 3000 seconds")["steps"]

    assert step["tool"]["args"] == {"seconds": MAX_PAUSE_SECONDS}


def test_every_template_is_reached_by_a_known_goal() -> None:
    reached = {
        next(pattern for pattern, _ in TEMPLATES if pattern.match(goal)) for goal, _, _ in KNOWN
    }

    assert reached == {pattern for pattern, _ in TEMPLATES}


def test_a_long_goal_costs_no_time() -> None:
    assert stub_plan("from {" * 100_000) == stub_plan()
    assert stub_plan("greet " + "a " * 100_000) == stub_plan()

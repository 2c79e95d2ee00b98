"""Plans that came with their goal: two places, filled once and literally."""

from typing import Any

import pytest

from agents.cycle.planner_input import fill_plan


def filled(text: Any, feedback: str = "add tests", iteration: int = 2) -> Any:
    step = {"step_id": "step_1", "tool": {"name": "echo", "args": {"a": text}}}
    plan = fill_plan({"steps": [step]}, iteration, feedback)
    return plan["steps"][0]["tool"]["args"]["a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("round ${iteration}", "round 2"),
        ("${feedback}", "add tests"),
        (["${iteration}", {"b": "${feedback}"}], ["2", {"b": "add tests"}]),
        ("$iteration ${name}", "$iteration ${name}"),
        (7, 7),
    ],
)
def test_places_are_filled(text: Any, expected: Any) -> None:
    assert filled(text) == expected


def test_what_a_check_says_is_no_place_and_no_reference() -> None:
    assert filled("${feedback}", "${iteration}") == "$${iteration}"
    assert filled("${feedback}", "$step_1.output") == "$$step_1.output"
    assert filled("say ${feedback}", "${iteration}") == "say ${iteration}"


def test_arguments_beside_a_named_tool_are_filled() -> None:
    step = {"step_id": "step_1", "tool": "echo", "args": {"a": "${iteration}"}}
    plan = fill_plan({"steps": [step]}, 3, "")

    assert plan["steps"][0]["args"] == {"a": "3"}
    assert step["args"] == {"a": "${iteration}"}

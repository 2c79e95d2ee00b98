"""A plan in another coat: a bare list of steps is taken for one, nothing else is (X-20)."""

from typing import Any

import pytest

from failsoft.retry.coercion import soften_plan

STEP = {"step_id": "look", "tool": "echo"}


@pytest.mark.parametrize(
    "steps",
    [
        [STEP],
        [{"tool": "echo"}],  # one of both says that it is a step
        [{"step_id": "look"}],
    ],
)
def test_x_20_a_bare_list_of_steps_is_a_plan(steps: list[dict[str, str]]) -> None:
    softened = soften_plan(steps)
    assert softened.value["steps"] == steps
    assert [leniency.kind for leniency in softened.done] == ["bare_list"]


@pytest.mark.parametrize(
    "value", [[], [{"title": "look"}], [STEP, {"title": "look"}], [STEP, "echo"], ["echo"], 7]
)
def test_x_20_any_other_list_is_left_as_it_was(value: Any) -> None:
    softened = soften_plan(value)
    assert (softened.value, softened.done) == (value, [])


def test_x_20_a_step_that_is_no_object_stays_for_the_validator() -> None:
    softened = soften_plan({"steps": [STEP, "echo", 7]})
    assert softened.value["steps"] == [STEP, "echo", 7]


@pytest.mark.parametrize("key", ["rejected_plan", "previousPlan", "wrong answer", "example_plan"])
def test_a_plan_under_a_key_that_rules_it_out_is_no_answer(key: str) -> None:
    wrapped = {key: {"steps": [{"step_id": "a", "tool": "echo"}]}}
    assert soften_plan(wrapped).value == wrapped


@pytest.mark.parametrize("key", ["plan", "final_plan", "revised_plan", "formatted_plan"])
def test_a_plan_under_any_other_key_is_the_answer(key: str) -> None:
    plan = {"steps": [{"step_id": "a", "tool": "echo"}]}
    assert soften_plan({key: plan}).value == plan

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

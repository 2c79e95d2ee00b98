"""The tools that an answer calls, checked before it is accepted (X-15)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from failsoft.plans.violations import Violation
from failsoft.retry.answers import Misunderstood, PlannerSchema, Understood, interpret

PLAN, NEXT_STEP = PlannerSchema.PLAN, PlannerSchema.NEXT_STEP


def check(tool: str, args: Mapping[str, Any]) -> Sequence[Violation]:
    """`paint` needs a colour, and is the only tool."""
    if tool != "paint":
        return [Violation("", "tool_unknown", "expected paint")]
    return [] if "colour" in args else [Violation("/colour", "argument_missing", "expected it")]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (PLAN, '{"steps": [{"step_id": "a", "tool": {"name": "paint", "args": {"colour": 1}}}]}'),
        (PLAN, '{"steps": [{"step_id": "a", "tool": "paint", "inputs": {"colour": 1}}]}'),
        (NEXT_STEP, '{"kind": "call_tool", "tool": "paint", "args": {"colour": 1}}'),
        (NEXT_STEP, '{"kind": "finish", "answer": "ok"}'),
    ],
)
def test_an_answer_whose_calls_fit_is_accepted(schema: PlannerSchema, text: str) -> None:
    assert isinstance(interpret(text, "stop", schema, check), Understood)


@pytest.mark.parametrize(
    ("schema", "text", "place"),
    [
        (PLAN, '{"steps": [{"step_id": "a", "tool": {"name": "pant"}}]}', ("/steps/0/tool", 1, 37)),
        (PLAN, '{"steps": [{"step_id": "a", "tool": "pant"}]}', ("/steps/0/tool", 1, 37)),
        (NEXT_STEP, '{"kind": "call_tool", "tool": "pant"}', ("/tool", 1, 31)),
    ],
)
def test_x_15_an_unknown_tool_is_an_error_at_its_name(
    schema: PlannerSchema, text: str, place: tuple[str, int, int]
) -> None:
    answer = interpret(text, "stop", schema, check)

    assert isinstance(answer, Misunderstood)
    (error,) = answer.errors
    assert (error.path, error.line, error.column) == place
    assert (answer.error_type, error.code) == ("schema_invalid", "tool_unknown")
    assert answer.unknown_tools == ("pant",)


@pytest.mark.parametrize(
    ("schema", "text", "place"),
    [
        (PLAN, '{"steps": [{"step_id": "a", "tool": {"name": "paint", "args": {}}}]}',
         ("/steps/0/tool/args/colour", 1, 63)),
        (PLAN, '{"steps": [{"step_id": "a", "tool": {"name": "paint", "params": {}}}]}',
         ("/steps/0/tool/args/colour", 1, 65)),
        (PLAN, '{"steps": [{"step_id": "a", "tool": "paint"}]}', ("/steps/0/args/colour", 1, 12)),
        (NEXT_STEP, '{"kind": "call_tool", "tool": "paint", "input": {"color": 1}}',
         ("/args/colour", 1, 49)),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_errors_at_their_place(
    schema: PlannerSchema, text: str, place: tuple[str, int, int]
) -> None:
    answer = interpret(text, "stop", schema, check)

    assert isinstance(answer, Misunderstood)
    (error,) = answer.errors
    assert (error.path, error.line, error.column) == place
    assert (error.code, answer.unknown_tools) == ("argument_missing", ())


def test_every_call_is_reported_beside_the_faults_of_the_plan() -> None:
    text = (
        '{"steps": [{"step_id": "a", "tool": "pant"}, {"step_id": "a", "tool": "dust"},'
        ' {"step_id": "b", "tool": {"args": {}}}, 7]}'
    )

    answer = interpret(text, "stop", PLAN, check)

    assert isinstance(answer, Misunderstood)
    assert answer.unknown_tools == ("dust", "pant")
    assert {error.code for error in answer.errors} == {
        *("step_id_duplicate", "tool_name_missing", "step_type", "tool_unknown")
    }

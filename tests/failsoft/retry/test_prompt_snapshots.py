"""The prompts to the byte: who changes one sees all of it (S1-77).

A prompt that is changed on purpose is written anew by UPDATE_PROMPTS=1, and PROMPT_VERSION raised.
"""

import os
from pathlib import Path

import pytest

from failsoft.retry.answers import WRITTEN, Misunderstood, PlannerSchema, interpret
from failsoft.retry.engine import Feedback, PlannedAttempt
from failsoft.retry.policy import OutputMode, RetryPolicy
from failsoft.retry.prompts import PROMPT_VERSION, Request, ToolOffer, build_prompt

FOLDER = Path(__file__).parent / "prompts"
BROKEN = '{"kind": "call_tool",\n "steps": [{"step_id": "step_1", "tool": 5}]}'
TOOLS = (
    ToolOffer("echo", "Return the arguments unchanged."),
    ToolOffer("http_get", "Fetch.", {"properties": {"url": {"type": "string"}}}),
    ToolOffer("template", "Fill.", {"properties": {"values": {"type": "object"}}}),
)
KINDS = ("initial", "feedback", "final")


def make_attempt(schema: PlannerSchema, kind: str) -> PlannedAttempt:
    """The first, a middle and the last attempt of a ladder of three."""
    outcome = interpret(BROKEN, "stop", schema)
    assert isinstance(outcome, Misunderstood)
    feedback = Feedback(BROKEN, outcome.error_type, outcome.errors)
    final = kind == "final"
    policy = RetryPolicy()
    return PlannedAttempt(
        number=KINDS.index(kind) + 1,
        total=3,
        feedback=None if kind == "initial" else feedback,
        simplified=final,
        output_mode=OutputMode.TEXT,
        max_output_tokens=policy.max_output_tokens,
        temperature=policy.temperature,
        timeout_seconds=policy.timeout_seconds,
        dropped_constraints=("in rhyme",) if final else (),
    )


@pytest.mark.parametrize("schema", WRITTEN)
@pytest.mark.parametrize("kind", KINDS)
def test_s1_77_a_prompt_is_what_it_was(schema: PlannerSchema, kind: str) -> None:
    request = Request(schema, "Say hello", TOOLS, ("in English",), ("in rhyme",))
    prompt = build_prompt(request, make_attempt(schema, kind))
    path = FOLDER / f"{PROMPT_VERSION}-{schema.value}-{kind}.txt"
    text = f"{prompt.system}\n----\n{prompt.user}\n"
    if os.environ.get("UPDATE_PROMPTS"):
        path.write_text(text, encoding="utf-8")

    assert text == path.read_text(encoding="utf-8")

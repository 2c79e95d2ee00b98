"""The mistakes that feedback names are those of the answer (S1-9)."""

import pytest

from agents.fix_patterns.recoveries import CODES
from failsoft.events import ParseErrorType
from failsoft.parsing.faults import RefusalCause
from failsoft.retry.answers import (
    Misunderstood,
    PlannerSchema,
    Understood,
    explain_reasoning,
    interpret,
)
from failsoft.retry.engine import Feedback
from failsoft.retry.prompts import describe_feedback, mistakes_in

NEXT_STEP, PLAN = PlannerSchema.NEXT_STEP, PlannerSchema.PLAN
STEP = '"step_id": "step_1", "tool": "echo"'


def mistakes_of(text: str, schema: PlannerSchema = PLAN, reason: str = "stop") -> list[str]:
    """The mistakes in the feedback to an answer."""
    answer = interpret(text, reason, schema)
    assert isinstance(answer, Misunderstood)
    feedback = describe_feedback(
        schema, Feedback(text, answer.error_type, answer.errors), simplified=False
    )
    lines = feedback.partition("Common mistakes to avoid:\n")[2].splitlines()
    return [line.removeprefix("- ") for line in lines if line.startswith("- ")]


@pytest.mark.parametrize(
    ("text", "schema", "mistakes"),
    [
        (f'{{"steps": [{{{STEP}}}, {{{STEP}}}]}}', PLAN,
         ["ids other than step_1, step_2, ... each used once"]),
        (f'{{"steps": [{{{STEP}, "dependencies": ["step_9"]}}]}}', PLAN,
         ["a dependency on a step that does not exist, or a circle of dependencies"]),
        ('{"steps": []}', PLAN, ["an empty text or list"]),
        ('{"steps": [{"step_id": "a", "action": "b"}]}', PLAN,
         ["leaving out a required key", "keys that the form does not have"]),
        ('{"steps": [{"step_id": "a", "tool": {"name": "b"}, "args": {}}]}', PLAN,
         ["args beside a tool object: they belong inside it"]),
        ('{"kind": "dance"}', NEXT_STEP, ["a kind other than call_tool, ask_user or finish"]),
        ('{"kind": "call_tool", "tool": "a", "args": []}', NEXT_STEP,
         ["a value of another type than the form shows"]),
        ('{"kind": "finish", "answer": "a"} {"kind": "finish", "answer": "b"}', NEXT_STEP,
         ["more than one JSON object, or a second version of it"]),
        ('{"kind": "finish", "kind": "call_tool"}', NEXT_STEP,
         ["the same key twice in one object"]),
        ('{"kind": "finish", "answer": "so', NEXT_STEP,
         ["stopping before the last bracket: give fewer steps and shorter texts"]),
        (" ", NEXT_STEP, ["an answer without text"]),
        ('{"type": "object", "properties": {"steps": {"type": "array"}}, "required": ["steps"]}',
         PLAN, ["the JSON Schema in place of an answer that fits it"]),
        ('{"name": "step", "schema": {"$schema": "https://json-schema.org/draft/2020-12/schema",'
         ' "properties": {"kind": {}}}}',
         NEXT_STEP, ["the JSON Schema in place of an answer that fits it"]),
    ],
)  # fmt: skip
def test_s1_9_the_mistakes_are_those_that_were_made(
    text: str, schema: PlannerSchema, mistakes: list[str]
) -> None:
    assert mistakes_of(text, schema) == mistakes


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ('{"kind": "finish", "answer": "she said "no", and left"}', "a quote inside a string"),
        ('{"kind": "finish", "answer": "D:\\users\\nNew"}', "a single backslash"),
        ('{"kind": "finish", "answer": NaN}', "NaN or Infinity"),
        ('{"kind": "finish", "answer": 1e999}', "a number beyond the usual range"),
        ('{"kind": "finish", "answer": 0042}', "a number such as 007"),
        ('{"kind": "call_tool", "tool": "a", "args": {"x": [1, ...]}}', "leaving out parts"),
        ("- first call echo\n- then finish", "a Markdown list"),
        ("First I would call echo, and then I would stop.", "sentences in place"),
        ("<think>What to do? I would finish.</think>", "thinking that no answer follows"),
        ('<invoke name="go"><parameter name="x">{"kind": "finish"}</parameter></invoke>',
         "a tool call in place of the answer"),
        ('<parameter=next>\n{"kind": "finish"}\n</parameter>', "a tool call in place"),
        ('An answer could look like this: {"kind": "finish", "answer": "ok"}', "an example"),
    ],
)  # fmt: skip
def test_s1_9_the_cause_that_the_parser_found_is_the_mistake(text: str, mistake: str) -> None:
    (line,) = mistakes_of(text, NEXT_STEP)

    assert line.startswith(mistake)


def test_arguments_that_are_a_schema_are_an_answer() -> None:
    schema = '{"type": "object", "properties": {"a": {}}}'
    text = f'{{"kind": "call_tool", "tool": "save", "args": {{"schema": {schema}}}}}'

    assert isinstance(interpret(text, "stop", NEXT_STEP), Understood)


@pytest.mark.parametrize("error_type", list(ParseErrorType))
@pytest.mark.parametrize("code", [None, "", "no_tool_call", "a_code_of_tomorrow"])
def test_s1_9_there_is_always_a_mistake_to_avoid(
    error_type: ParseErrorType, code: str | None
) -> None:
    assert all(mistakes_in(error_type, codes) for codes in ([], [code], [code, code]))


def test_s1_9_every_code_of_ours_has_a_line_of_its_own() -> None:
    others = mistakes_in(ParseErrorType.OTHER, ["a_code_of_tomorrow"])
    for code in (*CODES, *RefusalCause):
        assert mistakes_in(ParseErrorType.SCHEMA_INVALID, [code]) != others, code


def test_a_prompt_names_a_few_mistakes_at_most() -> None:
    assert len(mistakes_in(ParseErrorType.SCHEMA_INVALID, sorted(CODES))) == 5


def test_after_a_refusal_no_format_is_asked_for() -> None:
    text = "I'm sorry, but I can't help with that."
    answer = interpret(text, "stop", PLAN)
    assert isinstance(answer, Misunderstood)
    said = describe_feedback(
        PLAN, Feedback(text, answer.error_type, answer.errors), simplified=True
    )

    assert said.endswith("say so in one sentence, without an example.")
    assert "Return only" not in said
    assert mistakes_of(text)[0].startswith("declining the whole goal")


@pytest.mark.parametrize(
    ("output", "reasoning", "told"),
    [(900, 900, "all 900 output tokens"), (None, 12_000, "all 12,000 output tokens"),
     (1_200, 1_100, "1,100 of 1,200 output tokens")],
)  # fmt: skip
def test_reasoning_that_took_the_tokens_is_the_cause(
    output: int | None, reasoning: int, told: str
) -> None:
    answer = interpret("", "length", PLAN)
    assert isinstance(answer, Misunderstood)

    (error,) = explain_reasoning(answer, " \n", output, reasoning).errors

    assert (error.code, error.line, error.column) == ("only_reasoning", 1, 1)
    assert f"{told} were reasoning" in error.message


@pytest.mark.parametrize(
    ("text", "reason", "reasoning"),
    [("", "stop", 0), ("", "stop", None), ('{"steps": [', "length", 900), ("Sure!", "stop", 900),
     ("", "content_filter", 900)],
)  # fmt: skip
def test_reasoning_is_not_blamed_for_anything_else(
    text: str, reason: str, reasoning: int | None
) -> None:
    answer = interpret(text, reason, PLAN)
    assert isinstance(answer, Misunderstood)

    assert explain_reasoning(answer, text, 900, reasoning) == answer

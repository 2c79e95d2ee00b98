"""What a recovery teaches, in closed sets; and what it never lets through (X-14, S19)."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.fix_patterns.recoveries import (
    OTHER,
    FixChange,
    FixRule,
    Recovery,
    ValueShape,
    describe,
    own_pointer,
    patterns_of,
)
from failsoft.events import ParseErrorType, ValidationErrorItem
from failsoft.json_values import pointer_parts
from failsoft.retry.answers import Misunderstood, PlannerSchema, interpret, reread

GOOD_PLAN = """{"steps": [
 {"step_id": "step_1", "title": "a", "dependencies": [],
  "tool": {"name": "echo", "args": {"text": "x"}}},
 {"step_id": "step_2", "dependencies": ["step_1"],
  "tool": {"name": "echo", "args": {"text": "y"}}}]}"""
GOOD_STEP = '{"kind": "call_tool", "tool": "echo", "args": {"text": "x"}}'
GOOD = {PlannerSchema.PLAN: GOOD_PLAN, PlannerSchema.NEXT_STEP: GOOD_STEP}
# Everything a pattern or its words may consist of.
NAMES = re.compile(r"(/[a-z_*]{1,40}){0,12}")


def taught(broken: str, schema: PlannerSchema = PlannerSchema.PLAN) -> list[FixRule]:
    """The patterns that a broken answer teaches beside a good one."""
    found = interpret(broken, "stop", schema)
    assert isinstance(found, Misunderstood)
    again = reread(broken, schema)
    good = json.loads(GOOD[schema])
    return patterns_of(
        Recovery(schema, found.error_type, found.errors, again.value, good, again.dropped)
    )


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        # a key that is not there
        (
            '{"steps": [{"step_id": "step_1"}]}',
            "`steps[*].tool` is never left out: it is an object.",
        ),
        # the same under a name of the model's own: the name is not repeated
        (
            '{"steps": [{"step_id": "step_1", "action": "echo"}]}',
            "`steps[*].tool` is never left out: its key is exactly `tool`.",
        ),
        # another type
        (
            '{"steps": [{"step_id": "step_1", "tool": 5}]}',
            "`steps[*].tool` is an object, not a number.",
        ),
        ('{"steps": []}', "`steps` holds at least one step."),
        (
            '{"steps": [{"step_id": "step_1", "tool": "a", "dependencies": ["step_9"]}]}',
            "`steps[*].dependencies` names only the step_id of earlier steps of the same plan.",
        ),
        (
            '{"steps": [{"step_id": "step_3", "tool": "a"}]}',
            "`steps[*].step_id` starts at step_1.",
        ),
        ("[1]", "The answer is an object, not a list."),
        # not readable: the class alone
        ('{"steps": [', "Keep the answer short, so that it ends: few steps, short texts, "
         "every bracket closed."),
        ("", "Never leave the answer empty."),
    ],
)  # fmt: skip
def test_s1_43_a_broken_plan_teaches_one_sentence_of_ours(broken: str, says: str) -> None:
    assert [describe(pattern) for pattern in taught(broken)] == [says]


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ('{"kind": "go"}', "`kind` is one of the kinds that are listed."),
        ('{"kind": "call_tool"}', "`tool` is never left out: it is a text."),
        ('{"kind": "call_tool", "tool": "a", "args": []}', "`args` is an object, not a list."),
    ],
)
def test_s1_43_a_broken_step_teaches_one_sentence_of_ours(broken: str, says: str) -> None:
    assert [describe(item) for item in taught(broken, PlannerSchema.NEXT_STEP)] == [says]


def test_a_refusal_and_an_unknown_class_teach_nothing() -> None:
    for kind in (ParseErrorType.REFUSAL, ParseErrorType.OTHER):
        assert patterns_of(Recovery(PlannerSchema.PLAN, kind, (), None, {})) == []


def test_an_answer_teaches_a_few_patterns_at_most() -> None:
    broken = '{"steps": [{"title": 1, "dependencies": {}, "tool": {"args": 1}}]}'

    found = taught(broken)

    assert len(found) == len(set(found)) == 3


def test_below_the_arguments_of_a_tool_nothing_is_named() -> None:
    parts = pointer_parts("/steps/3/tool/args/name/steps")

    assert own_pointer(parts, PlannerSchema.PLAN) == "/steps/*/tool/args/*/*"


# Any JSON, with keys and texts that a hostile model may choose.
TEXT = st.text(max_size=6)
KEYS = st.sampled_from(["steps", "tool", "args", "step_id", "kind"]) | TEXT
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    schema=st.sampled_from(list(PlannerSchema)),
    kind=st.sampled_from(list(ParseErrorType)),
    broken=JSON,
    good=JSON,
    path=st.text(max_size=12) | st.just("/steps/0/tool"),
    code=TEXT | st.sampled_from(["tool_missing", "missing"]),
    dropped=st.lists(TEXT, max_size=2),
)
def test_s1_45_whatever_comes_in_only_closed_sets_come_out(
    schema: PlannerSchema,
    kind: ParseErrorType,
    broken: Any,
    good: Any,
    path: str,
    code: str,
    dropped: list[str],
) -> None:
    error = ValidationErrorItem(path=path, code=code or None, message="m")
    recovery = Recovery(schema, kind, (error,), broken, good, tuple(dropped))

    for pattern in patterns_of(recovery):
        assert NAMES.fullmatch(pattern.pointer)
        assert pattern.code == OTHER or re.fullmatch(r"[a-z_]{1,64}", pattern.code)
        assert isinstance(pattern.change, FixChange)
        assert isinstance(pattern.before, ValueShape)
        assert 0 < len(describe(pattern)) <= 200

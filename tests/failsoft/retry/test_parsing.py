"""One answer in, one verdict out, for each schema (X-7, X-13, X-15, X-20)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failsoft.retry.answers import AnswerSchema, dotted, parse_answer

PLAN, NEXT_STEP, DECISION = (AnswerSchema.PLAN, AnswerSchema.NEXT_STEP, AnswerSchema.DECISION)

# Each row: schema, text, value, and the kind and place of every leniency.
TAKEN: list[tuple[AnswerSchema, str, Any, list[tuple[str, str, int, int]]]] = [
    (PLAN, '{"steps": [{"step_id": "step_1", "tool": "echo"}]}',
     {"steps": [{"step_id": "step_1", "tool": "echo"}]}, []),
    (PLAN, '[{"step_id": "a", "tool": "echo"}]',
     {"steps": [{"step_id": "a", "tool": "echo"}]}, [("", "bare_list", 1, 1)]),
    (PLAN, '{"plan": {"steps": [{"step_id": "a", "tool": "echo"}]}}',
     {"steps": [{"step_id": "a", "tool": "echo"}]}, [("/plan", "wrapper_key", 1, 10)]),
    (PLAN, '{"result": [{"step_id": "a", "tool": "echo"}], "note": 1}',
     {"steps": [{"step_id": "a", "tool": "echo"}]},
     [("/result", "wrapper_key", 1, 12), ("/result", "bare_list", 1, 12),
      ("/note", "unknown_key_dropped", 1, 48)]),
    (PLAN, '{"steps": [{"step_id": 1, "tool": "echo"},\n'
           '{"step_id": 2, "dependencies": 1, "tool": "echo"}]}',
     {"steps": [{"step_id": "1", "tool": "echo"},
                {"step_id": "2", "dependencies": ["1"], "tool": "echo"}]},
     [("/steps/0/step_id", "integer_id", 1, 24), ("/steps/1/step_id", "integer_id", 2, 13),
      ("/steps/1/dependencies", "scalar_for_list", 2, 32),
      ("/steps/1/dependencies/0", "integer_id", 2, 32)]),
    (PLAN, '{"steps": [{"step_id": "a", "dependencies": null, "tool": "echo"}]}',
     {"steps": [{"step_id": "a", "dependencies": [], "tool": "echo"}]},
     [("/steps/0/dependencies", "null_for_list", 1, 45)]),
    (PLAN, '{"steps": [{"step_id": "a", "tool": {"name": "echo", "args": "{\\"x\\": 1}"}}]}',
     {"steps": [{"step_id": "a", "tool": {"name": "echo", "args": {"x": 1}}}]},
     [("/steps/0/tool/args", "json_string", 1, 62)]),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "echo", "why": "x"}], "goal": "y"}',
     {"steps": [{"step_id": "a", "tool": "echo"}]},
     [("/goal", "unknown_key_dropped", 1, 59), ("/steps/0/why", "unknown_key_dropped", 1, 45)]),
    (NEXT_STEP, '{"kind": "CALL_TOOL", "tool": "echo", "args": "{}"}',
     {"kind": "call_tool", "tool": "echo", "args": {}},
     [("/args", "json_string", 1, 47), ("/kind", "letter_case", 1, 10)]),
    (NEXT_STEP, '{"kind": "ask_user", "question": "Which?", "need": "Input", "tool": null}',
     {"kind": "ask_user", "question": "Which?", "need": "input"},
     [("/need", "letter_case", 1, 52), ("/tool", "unknown_key_dropped", 1, 61)]),
    (NEXT_STEP, '{"kind": "finish", "answer": "ok"}', {"kind": "finish", "answer": "ok"}, []),
    # other names of arguments, in a tool, beside its name, and in a next step
    (PLAN, '{"steps": [{"step_id": "a", "tool": {"name": "t", "parameters": {"x": 1}}}]}',
     {"steps": [{"step_id": "a", "tool": {"name": "t", "args": {"x": 1}}}]},
     [("/steps/0/tool/parameters", "near_name", 1, 51)]),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t", "Tool-Input": {"x": 1}}]}',
     {"steps": [{"step_id": "a", "tool": "t", "args": {"x": 1}}]},
     [("/steps/0/Tool-Input", "near_name", 1, 42)]),
    (PLAN, '{"steps": [{"step_id": "a", "tool": {"name": "t", "ARGUMENTS": "{\\"x\\": 1}"}}]}',
     {"steps": [{"step_id": "a", "tool": {"name": "t", "args": {"x": 1}}}]},
     [("/steps/0/tool/ARGUMENTS", "near_name", 1, 51),
      ("/steps/0/tool/ARGUMENTS", "json_string", 1, 64)]),
    (NEXT_STEP, '{"kind": "call_tool", "tool": "t", "kwargs": {"x": 1}, "Thought": "so"}',
     {"kind": "call_tool", "tool": "t", "args": {"x": 1}, "thought": "so"},
     [("/kwargs", "near_name", 1, 36), ("/Thought", "near_name", 1, 56)]),
    # other names of the order
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t"},\n'
           '{"step_id": "b", "runAfter": "a", "tool": "t"},\n'
           '{"step_id": "c", "wait for": ["a"], "tool": "t"},\n'
           '{"step_id": "d", "Depends-On": null, "tool": "t"}]}',
     {"steps": [{"step_id": "a", "tool": "t"},
                {"step_id": "b", "dependencies": ["a"], "tool": "t"},
                {"step_id": "c", "dependencies": ["a"], "tool": "t"},
                {"step_id": "d", "dependencies": [], "tool": "t"}]},
     [("/steps/1/runAfter", "near_name", 2, 18), ("/steps/1/runAfter", "scalar_for_list", 2, 30),
      ("/steps/2/wait for", "near_name", 3, 18), ("/steps/3/Depends-On", "near_name", 4, 18),
      ("/steps/3/Depends-On", "null_for_list", 4, 32)]),
    # a JSON string in place of what it holds, alone or nested
    (PLAN, '{"steps": "[{\\"step_id\\": \\"a\\", \\"tool\\": \\"t\\"}]"}',
     {"steps": [{"step_id": "a", "tool": "t"}]}, [("/steps", "json_string", 1, 11)]),
    (PLAN, '{"plan": "{\\"steps\\": [{\\"step_id\\": \\"a\\", \\"tool\\": \\"t\\"}]}"}',
     {"steps": [{"step_id": "a", "tool": "t"}]},
     [("/plan", "wrapper_key", 1, 10), ("/plan", "json_string", 1, 10)]),
    (PLAN, '{"steps": ["{\\"step_id\\": \\"a\\", \\"tool\\": \\"t\\"}"]}',
     {"steps": [{"step_id": "a", "tool": "t"}]}, [("/steps/0", "json_string", 1, 12)]),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "{\\"name\\": \\"t\\", \\"params\\": {}}"}]}',
     {"steps": [{"step_id": "a", "tool": {"name": "t", "args": {}}}]},
     [("/steps/0/tool", "json_string", 1, 37), ("/steps/0/tool/params", "near_name", 1, 37)]),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t", "args": "{\'x\': True}"}]}',
     {"steps": [{"step_id": "a", "tool": "t", "args": {"x": True}}]},
     [("/steps/0/args", "json_string", 1, 50), ("/steps/0/args", "single_quotes", 1, 50),
      ("/steps/0/args", "python_literal", 1, 50)]),
    (PLAN, '[{"step_id": "a", "tool": "t"},'
           ' {"step_id": "b", "tool": "t", "dependencies": "[\\"a\\"]"}]',
     {"steps": [{"step_id": "a", "tool": "t"},
                {"step_id": "b", "tool": "t", "dependencies": ["a"]}]},
     [("", "bare_list", 1, 1), ("/1/dependencies", "json_string", 1, 79)]),
    (NEXT_STEP, '{"kind": "call_tool", "tool": "t", "args": "\\"{\\\\\\"x\\\\\\": 1}\\""}',
     {"kind": "call_tool", "tool": "t", "args": {"x": 1}},
     [("/args", "json_string", 1, 44), ("/args", "quoted_answer", 1, 44),
      ("/args", "double_encoding", 1, 44)]),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t", "args": {"text": "{\\"x\\": 1}"}}]}',
     {"steps": [{"step_id": "a", "tool": "t", "args": {"text": '{"x": 1}'}}]}, []),
    # any key of ours in another spelling
    (PLAN, '[{"stepId": 1, "Tool": {"Name": "t"}}]',
     {"steps": [{"step_id": "1", "tool": {"name": "t"}}]},
     [("", "bare_list", 1, 1), ("/0/stepId", "near_name", 1, 3), ("/0/Tool", "near_name", 1, 16),
      ("/0/stepId", "integer_id", 1, 13), ("/0/Tool/Name", "near_name", 1, 25)]),
    # remarks and nulls say nothing
    (PLAN, '{"summary": "s", "steps": [{"step_id": "a", "notes": ["n", 1], "when": null,'
           ' "tool": {"name": "t", "Reason": "r"}}]}',
     {"steps": [{"step_id": "a", "tool": {"name": "t"}}]},
     [("/summary", "unknown_key_dropped", 1, 2), ("/steps/0/notes", "unknown_key_dropped", 1, 45),
      ("/steps/0/when", "unknown_key_dropped", 1, 64),
      ("/steps/0/tool/Reason", "unknown_key_dropped", 1, 100)]),
    (PLAN, '{"reasoning": {"draft": "d", "doubts": ["x", {"y": 1}]},'
           ' "steps": [{"step_id": "a", "tool": "t"}]}',
     {"steps": [{"step_id": "a", "tool": "t"}]}, [("/reasoning", "unknown_key_dropped", 1, 2)]),
    # a plan within wrappers, and within a plan
    (PLAN, '{"response": {"plan": {"steps": [{"step_id": "a", "tool": "t"}]}}}',
     {"steps": [{"step_id": "a", "tool": "t"}]},
     [("/response", "wrapper_key", 1, 14), ("/response/plan", "wrapper_key", 1, 23)]),
    (PLAN, '{"steps": {"steps": [{"step_id": "a", "tool": "t"}]}}',
     {"steps": [{"step_id": "a", "tool": "t"}]}, [("/steps", "wrapper_key", 1, 11)]),
    (PLAN, '{"goal": "g", "steps": [{"title": "x", "steps": [{"step_id": "a", "tool": "t"}]}]}',
     {"steps": [{"step_id": "a", "tool": "t"}]},
     [("/steps", "wrapper_key", 1, 24), ("/steps/0", "wrapper_key", 1, 25),
      ("/goal", "unknown_key_dropped", 1, 2), ("/steps/0/title", "unknown_key_dropped", 1, 26)]),
    (PLAN, '{"contract_version": "1.0.0", "plan": [{"step_id": "a", "tool": "t"}]}',
     {"steps": [{"step_id": "a", "tool": "t"}], "contract_version": "1.0.0"},
     [("/plan", "wrapper_key", 1, 39), ("/plan", "bare_list", 1, 39)]),
    (DECISION, '{"decision": "PASS", "check_id": "c1"}',
     {"decision": "complete", "check_id": "c1"}, [("/decision", "pass_or_fail", 1, 14)]),
    (DECISION, '{"decision": "Fail"}', {"decision": "incomplete"},
     [("/decision", "pass_or_fail", 1, 14)]),
    (DECISION, '{"decision": "COMPLETE", "check_id": 7, "reasons": "r", "fingerprints": null}',
     {"decision": "complete", "check_id": "7", "reasons": ["r"], "fingerprints": []},
     [("/decision", "letter_case", 1, 14), ("/check_id", "integer_id", 1, 38),
      ("/reasons", "scalar_for_list", 1, 52), ("/fingerprints", "null_for_list", 1, 73)]),
    (DECISION, '{"decision": "incomplete", "check_id": "c", "mood": 1}',
     {"decision": "incomplete", "check_id": "c"}, [("/mood", "unknown_key_dropped", 1, 45)]),
]  # fmt: skip

# Each row: schema, text, line and column of the first error.
REFUSED = [
    (PLAN, '{"steps": []}', 1, 11),
    (PLAN, "[]", 1, 1),
    (PLAN, '{"a": 1}', 1, 1),
    (PLAN, '{"steps": null}', 1, 11),
    (PLAN, '{"steps": {"step_id": "a", "tool": "echo"}}', 1, 11),
    (PLAN, '{"steps": [{"step_id": "a"}]}', 1, 12),
    (PLAN, '{"steps": [{"tool": "echo"}]}', 1, 12),
    (PLAN, '{"steps": [{"step_id": true, "tool": "echo"}]}', 1, 24),
    (PLAN, '{"steps": [{"step_id": "a", "tool": 5}]}', 1, 37),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "echo", "args": null}]}', 1, 53),
    (PLAN, '{"steps": [{"step_id": "a", "dependencies": {}, "tool": "echo"}]}', 1, 45),
    (PLAN, '{"steps": [{"step_id": "a", "dependencies": [null], "tool": "echo"}]}', 1, 46),
    # gap, dangling id, duplicate id, cycle, self
    (PLAN, '{"steps": [{"step_id": "step_1", "tool": "t"},\n'
           '{"step_id": "step_3", "tool": "t"}]}', 2, 13),
    (PLAN, '{"steps": [{"step_id": "a", "dependencies": ["b"], "tool": "t"}]}', 1, 46),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t"},\n{"step_id": "a", "tool": "t"}]}', 2, 13),
    (PLAN, '{"steps": [{"step_id": "a", "dependencies": ["b"], "tool": "t"},\n'
           '{"step_id": "b", "dependencies": ["a"], "tool": "t"}]}', 1, 45),
    (PLAN, '{"steps": [{"step_id": "a", "dependencies": ["a"], "tool": "t"}]}', 1, 46),
    # the same under a wrapper, in a bare list, and in damaged text
    (PLAN, '{"plan": {"steps": [{"step_id": "a", "dependencies": ["b"], "tool": "t"}]}}', 1, 55),
    (PLAN, '[{"step_id": "a", "tool": "t"},\n {"step_id": "a", "tool": "t"}]', 2, 14),
    (PLAN, "```\n{'steps': [{'step_id': 'a', 'tool': 't'},\n"
           " {'step_id': 'a', 'tool': 't'},]}\n```", 3, 14),
    (PLAN, '"{\\"steps\\": [{\\"step_id\\": \\"a\\", \\"dependencies\\": [\\"b\\"], '
           '\\"tool\\": \\"t\\"}]}"', 1, 55),
    # a key that may mean something: in the plan, a step, a tool, beside a wrapper, in a next step
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t"}], "dry_run": true}', 1, 44),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t", "if": "x > 1"}]}', 1, 42),
    (PLAN, '{"steps": [{"step_id": "a", "tool": {"name": "t", "timeout": 5}}]}', 1, 51),
    (PLAN, '{"parallel": false, "plan": {"steps": [{"step_id": "a", "tool": "t"}]}}', 1, 2),
    (PLAN, '{"dry_run": 1, "list": [{"step_id": "a", "tool": "t"}]}', 1, 2),
    (NEXT_STEP, '{"kind": "call_tool", "tool": "t", "after": ["step_1"]}', 1, 36),
    (NEXT_STEP, '{"kind": "finish", "answer": "ok", "tool": "t"}', 1, 36),
    (NEXT_STEP, '{"KIND": "finish", "kind": "call_tool", "tool": "t"}', 1, 2),
    # a remark holds no plan
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t"}], "notes": [{"also": [{"tool": "t"}]}]}',
     1, 44),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t"}], "note": {"steps": []}}', 1, 44),
    # two names of one key
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t", "args": {}, "params": {"x": 1}}]}', 1, 54),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t", "deps": [], "after": ["a"]}]}', 1, 54),
    # an argument list that is no object, under another name
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t", "input": "hello"}]}', 1, 51),
    # a string that holds more than the value, less, another kind of value, or a second plan
    (PLAN, '{"steps": "[{\\"step_id\\": \\"a\\", \\"tool\\": \\"t\\"}] in this order"}', 1, 11),
    (PLAN, '{"steps": "[{\\"step_id\\": \\"a\\", \\"tool\\": \\"t\\"}"}', 1, 11),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t", "args": "use {\'x\': 1}"}]}', 1, 50),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t", "args": "{\'x\': 1 /* or 2 */}"}]}', 1, 50),
    (PLAN, '{"steps": [{"step_id": "a", "tool": "t", "args": "[1]"}]}', 1, 50),
    (PLAN, '{"plan": "{\\"steps\\": [{\\"step_id\\": \\"a\\", \\"tool\\": \\"t\\"}]}",'
           ' "plan_b": {"steps": [{"step_id": "b", "tool": "t"}]}}', 1, 1),
    # an example is no answer; of two plans none is the answer
    (PLAN, '{"error": "no", "example": {"steps": [{"step_id": "a", "tool": "t"}]}}', 1, 1),
    (PLAN, '{"plan": {"steps": [{"step_id": "a", "tool": "t"}]},'
           ' "plan_b": {"steps": [{"step_id": "a", "tool": "t"}]}}', 1, 1),
    (NEXT_STEP, '{"kind": "dance"}', 1, 10),
    (NEXT_STEP, '{"tool": "echo"}', 1, 1),
    (NEXT_STEP, '{"kind": "call_tool"}', 1, 1),
    (NEXT_STEP, '{"kind": "call_tool", "tool": "echo", "args": [1]}', 1, 47),
    (NEXT_STEP, '{"kind": "call_tool", "tool": "echo", "args": null}', 1, 47),
    (NEXT_STEP, '{"kind": "ask_user", "question": ""}', 1, 34),
    (NEXT_STEP, '[{"kind": "finish"}]', 1, 1),
    (DECISION, '{"decision": true}', 1, 14),
    (DECISION, '{"decision": "done"}', 1, 14),
    (DECISION, '{"verdict": "pass"}', 1, 1),
    (DECISION, '["complete"]', 1, 1),
    (DECISION, '{"decision": ["pass"]}', 1, 14),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "text", "value", "coerced"), TAKEN)
def test_x_20_leniency_is_taken_and_told_with_its_place(
    schema: AnswerSchema, text: str, value: object, coerced: list[tuple[str, str, int, int]]
) -> None:
    answer = parse_answer(text, schema)
    assert answer["error"] is None
    assert (answer["ok"], answer["value"]) == (True, value)
    assert [tuple(item.values()) for item in answer["coerced"]] == coerced


@pytest.mark.parametrize(("schema", "text", "line", "column"), REFUSED)
def test_x_15_errors_of_shape_are_schema_invalid_and_located(
    schema: AnswerSchema, text: str, line: int, column: int
) -> None:
    answer = parse_answer(text, schema)
    assert (answer["ok"], answer["value"]) == (False, None)
    assert answer["error"]["type"] == "schema_invalid"
    assert (answer["error"]["line"], answer["error"]["column"]) == (line, column)


def test_s1_13_the_message_says_where_and_what_was_expected() -> None:
    answer = parse_answer('{"steps": [{"step_id": "a", "tool": 5}]}', PLAN)
    assert answer["error"]["message"].startswith("line 1, column 37: steps[0].tool: expected")


def test_s1_12_broken_text_is_told_with_the_offending_line() -> None:
    answer = parse_answer('{\n  "a": 1,\n  "b": 2 3\n}', PLAN)
    assert answer["error"]["message"] == (
        'line 3, column 10: expected `,` or `}`\n  "b": 2 3\n         ^'
    )


def test_none_takes_any_object_or_array() -> None:
    assert parse_answer("[{}, 1]")["value"] == [{}, 1]
    assert parse_answer("7")["ok"] is False


def test_x_15_a_finish_reason_of_length_is_truncated() -> None:
    answer = parse_answer('{"steps": [{"step_id": "a"', PLAN, "length")
    assert answer["error"]["type"] == "truncated"


@pytest.mark.parametrize(
    ("pointer", "written"),
    [("", "the answer"), ("/steps/1/tool", "steps[1].tool"), ("/0/a~1b", "[0].a/b")],
)
def test_pointers_are_written_as_people_do(pointer: str, written: str) -> None:
    assert dotted(pointer) == written


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "steps",
                    "step_id",
                    "tool",
                    "args",
                    "dependencies",
                    "kind",
                    "decision",
                    "plan",
                    "x/~",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@given(JSON.map(repr), st.sampled_from(AnswerSchema))
@settings(max_examples=500, deadline=None)
def test_no_answer_is_an_error_of_ours(text: str, schema: AnswerSchema) -> None:
    answer = parse_answer(text, schema)
    assert answer["ok"] is (answer["error"] is None)
    if answer["error"] is not None:
        assert answer["error"]["line"] >= 1
        assert answer["error"]["column"] >= 1


@pytest.mark.parametrize(("faults", "more"), [(5, False), (6, True)])
def test_the_message_names_five_errors_and_counts_the_others(faults: int, more: bool) -> None:
    steps = [{"step_id": f"s{number}", "tool": 5} for number in range(faults)]
    message = parse_answer(json.dumps({"steps": steps}), PLAN)["error"]["message"]
    assert message.count(".tool: expected") == 5
    assert message.endswith("; and 1 more") == more
    assert ("more" in message) == more


@pytest.mark.parametrize("tool", ["<tool name>", "[Werkzeug]", "{{tool}}", "..."])
def test_a_plan_whose_tool_only_stands_for_one_is_refused_without_a_registry(tool: str) -> None:
    answer = json.dumps({"steps": [{"step_id": "step_1", "tool": {"name": tool, "args": {}}}]})
    error = parse_answer(answer, PLAN)["error"]
    assert error["type"] == "schema_invalid"
    assert "this stands for one" in error["message"]

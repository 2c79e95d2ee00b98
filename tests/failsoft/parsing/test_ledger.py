"""What the ledger says about a repair: its kind, its place, and whether anything was lost."""

import pytest

from failsoft.events import MAX_ERRORS
from failsoft.parsing import Recovered, recover

# Each row: the text, then kind, line, column and whether nothing was lost.
ROWS = [
    ('{"a": 1,}', [("trailing_comma", 1, 8, True)]),
    ("{'a': 1}", [("single_quotes", 1, 2, True)]),
    ("{\n  a: 1}", [("unquoted_key", 2, 3, True)]),
    ('{"a: 1}', [("key_quote", 1, 2, True)]),
    ('{"a": done}', [("bare_value", 1, 7, True)]),
    ('{"a": +1}', [("number_form", 1, 7, True)]),
    ('{"a": True}', [("python_literal", 1, 7, True)]),
    ('{"a": (1, 2)}', [("tuple", 1, 7, True)]),
    ('{"a": {1, 2}}', [("set", 1, 7, True)]),
    ('{"a": "x" "y"}', [("joined_strings", 1, 11, True)]),
    ('{"a" = 1}', [("separator", 1, 6, True)]),
    ('{"a": 1 // x\n}', [("comment", 1, 9, False)]),
    ('{"a": 1 "b": 2}', [("missing_comma", 1, 9, True)]),
    ('{"a" 1}', [("missing_colon", 1, 6, True)]),
    ('{"a": "x"', [("missing_closer", 1, 10, True)]),
    ('{"a": 1}}', [("surplus_closer", 1, 9, False)]),
    ('{"a": "x\ny"}', [("raw_newline", 1, 9, True)]),
    ('{"a": "x \\\ny"}', [("line_continuation", 1, 10, True)]),
    ('{"a": "x "y" z"}', [("inner_quotes", 1, 10, True)]),
    ('{"a": "\\x41"}', [("hex_escape", 1, 8, True)]),
    ('{"a": "\\d"}', [("kept_backslash", 1, 8, True)]),
    ('{\\"a\\": 1}', [("double_encoding", 1, 1, True)]),
    ('\ufeff{"a": 1}', [("byte_order_mark", 1, 1, True)]),
    ('{"a":\u00a01}', [("no_break_space", 1, 6, True)]),
    ('{"a"：1}', [("full_width_punctuation", 1, 5, True)]),
    ('{"a": 1, "a": 1}', [("duplicate_key", 1, 10, True)]),
    ('```json\n{"a": 1}\n```', [("fence", 1, 1, True)]),
    ('Here:\n{"a": 1}', [("prose", 1, 1, False)]),
    ('<think>x</think>{"a": 1}', [("think_block", 1, 1, False)]),
    ('<answer>{"a": 1}</answer>', [("tag", 1, 1, True)]),
    ('return {"a": 1};', [("wrapper", 1, 1, True)]),
    ('{"a": 1}\n{"a": 1}', [("repeated_answer", 2, 1, True)]),
    ('"{"a": 1}"', [("quoted_answer", 1, 1, True)]),
    ('{"a": TRUE}', [("literal_case", 1, 7, True)]),
    ('{""a"": 1}', [("doubled_quotes", 1, 1, True)]),
    ('{\\n"a": 1}', [("escaped_space", 1, 2, True)]),
    ('{"a": 1}\u00a0', [("no_break_space", 1, 9, True)]),
    ('{"a": 1};', [("prose", 1, 9, False)]),
    ('> {"a": 1}', [("block_quote", 1, 1, True)]),
]


@pytest.mark.parametrize(("text", "expected"), ROWS)
def test_x_12_each_repair_is_told_with_place_and_loss(
    text: str, expected: list[tuple[str, int, int, bool]]
) -> None:
    outcome = recover(text)
    assert isinstance(outcome, Recovered), outcome
    repairs = [(item.kind, item.line, item.column, item.lossless) for item in outcome.repairs]
    assert repairs == expected


def test_valid_json_needs_no_repair() -> None:
    outcome = recover('{"a": [1, 2.5, null, "x"]}')
    assert isinstance(outcome, Recovered)
    assert outcome.repairs == ()


def test_x_15_a_tail_that_was_cut_off_is_told() -> None:
    outcome = recover('{"a": 1}\nbecause', "length")
    assert isinstance(outcome, Recovered)
    assert [item.kind for item in outcome.repairs] == ["prose", "tail_cut"]


def test_more_repairs_than_an_event_holds_are_summed_up() -> None:
    outcome = recover("[" + ", ".join(["'x'"] * 500) + "]")
    assert isinstance(outcome, Recovered)
    assert len(outcome.value) == 500
    assert len(outcome.repairs) == MAX_ERRORS
    assert outcome.repairs[-1].kind == "more_repairs"

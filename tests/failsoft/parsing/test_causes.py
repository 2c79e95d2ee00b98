"""The cause of a refusal: its code, its words, and the first character in doubt."""

import pytest

from failsoft.parsing import RefusedAnswer, recover
from failsoft.parsing.faults import RefusalCause

# Each row: the text, then the cause, line and column.
ROWS = [
    ('{"a": "say "no", then go"}', "unescaped_quote", 1, 12),
    ('{"the "big" key": 1}', "unescaped_quote", 1, 7),
    ('{"a": "no end, "b": 1}', "unclosed_string", 1, 7),
    (r'{"a": "C:\Users\nNew"}', "backslash", 1, 10),
    (r'{"a": "\d+\n"}', "backslash", 1, 8),
    (r'{"a": "half \ud83c"}', "half_character", 1, 7),
    ('{"a": NaN}', "not_finite", 1, 7),
    ('{"a": [-Infinity]}', "not_finite", 1, 8),
    ('{"a": 1e400}', "number_too_large", 1, 7),
    (f'{{"a": {"7" * 5000}}}', "too_many_digits", 1, 7),
    ('{"a": 0042}', "leading_zeros", 1, 7),
    ('{"a": 1,234}', "number_separators", 1, 7),
    ('{"a": New York}', "missing_quotes", 1, 7),
    ('{"a": https://example.com}', "missing_quotes", 1, 7),
    ('{"a": [1, ...]}', "left_out", 1, 11),
    ('{"a": 1, // rest unchanged\n"b": 2}', "left_out", 1, 10),
    ("<|python_start|>[find(n=1)]<|python_end|>", "call_markup", 1, 1),
    ("- buy bread\n- buy milk", "markdown_list", 1, 1),
    ("1. Buy bread.\n2. Buy milk.", "markdown_list", 1, 1),
    ("I have bought the bread.", "prose", 1, 1),
    ("<think>bread or milk?</think>\n", "only_thinking", 1, 1),
    ("<think>bread or milk?", "open_thinking", 1, 1),
    ("x = {'a': 1}\nx['b'] = 2", "program", 2, 1),
    ('A sample would look like this: {"a": 1}', "example", 1, 10),
    # No more is known than the type.
    ('{"a": 1} {"a": 2}', "multiple_objects", 1, 10),
    ('{"a": 1, "a": 2}', "duplicate_key", 1, 10),
    ("I won't do that.", "refusal", 1, 1),
    ("", "empty_output", 1, 1),
    ('{"a": 12:30}', "not_json", 1, 7),
]


@pytest.mark.parametrize(("text", "cause", "line", "column"), ROWS)
def test_a_refusal_names_its_cause_at_the_first_doubtful_character(
    text: str, cause: str, line: int, column: int
) -> None:
    outcome = recover(text)
    assert isinstance(outcome, RefusedAnswer)
    assert (outcome.cause, outcome.line, outcome.column) == (cause, line, column)
    assert outcome.reason.code == cause


def test_a_tool_call_that_its_server_could_not_read_is_a_cause_of_its_own() -> None:
    outcome = recover("", "MALFORMED_FUNCTION_CALL")
    assert isinstance(outcome, RefusedAnswer)
    assert outcome.cause == "malformed_call"


@pytest.mark.parametrize("cause", RefusalCause)
def test_each_cause_has_its_own_words(cause: RefusalCause) -> None:
    assert [other for other in RefusalCause if other.expected == cause.expected] == [cause]

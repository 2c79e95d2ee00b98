"""What is read out of a model's text, what is refused, and where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.core.extraction import MAX_ANSWER_BYTES, Answer, Refusal, read_answer

READ = [
    # what was written, its value, what was passed over
    ('{"a": 1}', {"a": 1}, []),
    ("[]", [], []),
    ('  {"a": 1}\n', {"a": 1}, []),
    ('```json\n{"a": 1}\n```', {"a": 1}, ["fence"]),
    ('~~~\n{"a": 1}\n~~~', {"a": 1}, ["fence"]),
    ('Sure! {"a": 1} Hope this helps.', {"a": 1}, ["prose"]),
    ('See [1]. {"a": 1}', {"a": 1}, ["prose"]),
    ('Here:\n```\n{"a": "}"}\n```\nDone', {"a": "}"}, ["fence", "prose"]),
    ('\ufeff{"a": 1}', {"a": 1}, ["byte_order_mark"]),
    ('{"a": 1} {"a": 1}', {"a": 1}, ["prose", "repeated_answer"]),
]

REFUSED = [
    # what was written, why it ended, the error, line and column
    ("", None, "empty_output", 1, 1),
    (" \n\t", None, "empty_output", 1, 1),
    ("not json", None, "not_json", 1, 1),
    ("null", None, "not_json", 1, 1),
    ('"text"', None, "not_json", 1, 1),
    (" 7", None, "not_json", 1, 2),
    ("I'm sorry, I cannot help with that.", None, "refusal", 1, 1),
    ('{"a": 1}', "content_filter", "refusal", 1, 1),
    ('{"a": 1} {"a": 2}', None, "multiple_objects", 1, 10),
    ('{"a": 1, "b": 2, "a": 3}', None, "duplicate_key", 1, 18),
    ('{"a": {"é": 1,\n  "é": 2}}', None, "duplicate_key", 2, 3),
    ('{"a": NaN}', None, "not_json", 1, 7),
    ('{"a": 1e999}', None, "not_json", 1, 1),
    ('{"é": 1,\n "b": nope}', None, "not_json", 2, 7),
    ('{"a": [1, 2', None, "truncated", 1, 12),
    ('{"a": "open', None, "truncated", 1, 7),
    ('{"a": 1', "length", "truncated", 1, 8),
    ('```json\n{"a": 1}\n``', "length", "truncated", 3, 3),
    ("[" * 65 + "]" * 65, None, "not_json", 1, 65),
]


@pytest.mark.parametrize(("text", "value", "passed_over"), READ)
def test_one_object_is_read_and_what_was_passed_over_is_listed(
    text: str, value: object, passed_over: list[str]
) -> None:
    found = read_answer(text)

    assert isinstance(found, Answer)
    assert found.value == value
    assert [repair.kind for repair in found.repairs] == passed_over


@pytest.mark.parametrize(
    ("text", "finish_reason", "error_type", "line", "column"), REFUSED
)
def test_anything_else_is_refused_with_its_place(
    text: str, finish_reason: str | None, error_type: str, line: int, column: int
) -> None:
    found = read_answer(text, finish_reason)

    assert isinstance(found, Refusal)
    assert found.error_type == error_type
    assert (found.errors[0].line, found.errors[0].column) == (line, column)


def test_a_value_that_closed_before_the_cut_is_taken_and_the_cut_recorded() -> None:
    found = read_answer('{"a": 1}', "length")

    assert isinstance(found, Answer)
    assert [(repair.kind, repair.lossless) for repair in found.repairs] == [
        ("cut_after_end", False)
    ]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{" * 100_000, '{"a":' * 50_000, "9" * 5_000]
)
def test_known_killers_are_refused(text: str) -> None:
    assert isinstance(read_answer(text), Refusal)


def test_more_than_a_mebibyte_is_refused() -> None:
    assert isinstance(read_answer('{"a": "' + "x" * MAX_ANSWER_BYTES + '"}'), Refusal)


@given(
    st.text() | st.text(alphabet='{}[]":,\\ \n1a`'),
    st.sampled_from([None, "stop", "length"]),
)
def test_no_text_ever_raises(text: str, finish_reason: str | None) -> None:
    found = read_answer(text, finish_reason)

    assert isinstance(found, Answer | Refusal)


@given(st.characters())
def test_a_lone_character_never_raises(character: str) -> None:
    assert isinstance(read_answer(character), Refusal)

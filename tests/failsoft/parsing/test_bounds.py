"""Any text at all: an answer or a refusal, never an error, in linear time."""

import json
import time
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from failsoft.parsing import Recovered, RefusedAnswer, recover
from failsoft.parsing.escapes import has_doubtful_escapes
from failsoft.parsing.scalars import QUOTES
from failsoft.parsing.tracing import MAX_BYTES, same

MIB = MAX_BYTES
NOISE = r"""
{ } [ ] ( ) : , ; = => " ' ` ``` ~~~ \ // /* */ # <!-- --> <think> </think> <| </ >
a key step_1 1 0 .5 0x - + e true None NaN ... {"a": "b":1 {'a': \" \u \ud83d '''
return f(
"""
UNSEEN = "\n \u201c\u201d\u2018\u2019\uff1a\ufeff\u00a0\x00\ud83d"
PIECES = st.sampled_from([*NOISE.split(), *UNSEEN, '"""'])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip

KILLERS = {
    "open_brackets": "[" * 100_000,
    "open_brackets_of_both_kinds": '{"a":[' * 50_000,
    "mebibyte_of_open_brackets": "[" * MIB,
    "deep_and_closed": "[" * 100_000 + "]" * 100_000,
    "closers": "]" * MIB,
    "long_integer": '{"a": ' + "7" * 5000 + "}",
    "mebibyte_of_digits": '{"a": ' + "7" * (MIB - 10) + "}",
    "nul": '{"a": "\x00", \x00}',
    "surrogates": '{"a": "\ud83d\ude00\ud83d"}',
    "one_long_word": "x" * MIB,
    "quotes": '"' * MIB,
    "object_of_quotes": "{" + '"' * (MIB - 1),
    "single_quotes": "{" + "'" * (MIB - 1),
    "smart_quotes": "{" + "\u201c" * (MIB // 3 - 1),
    "backslashes": "\\" * MIB,
    "string_of_backslashes": '{"a": "' + "\\" * (MIB - 8),
    "fences": "```" * (MIB // 3),
    "fence_lines": "```json\n" * (MIB // 8),
    "fence_that_ends_in_another_sign": "`" * (MIB - 1) + "!",
    "fence_of_tildes_behind_an_answer": "{}" + "~" * (MIB - 3) + "!",
    "blanks_behind_a_fence": "```" + "\t" * (MIB - 4) + "!",
    "blanks_before_an_answer": " " * (MIB - 10) + '{"a": 1}',
    "line_breaks_before_an_answer": "\n" * (MIB - 10) + '{"a": 1}',
    "letters_before_an_answer": "x" * (MIB - 10) + '\n{"a": 1}',
    "thinking_before_an_answer": "<think>" + "x" * (MIB - 60) + '</think>\nThe plan:\n{"a": 1}',
    "blanks_behind_a_python_tag": "<|python_tag|>" + " " * (MIB - 20) + "!",
    "blanks_behind_a_channel": "to=functions.f<|channel|>" + " " * (MIB - 30) + "!",
    "blanks_behind_a_start": "<|channel|>analysis<|message|>a<|start|>" + " " * (MIB - 50) + "!",
    "line_breaks_behind_a_name": ">>>f" + "\n" * (MIB - 5) + "!",
    "line_breaks_behind_an_action": "Action:f`" + "\n" * (MIB - 10) + "!",
    "blanks_behind_the_key_of_an_argument": "<tool_call>f<arg_key>" + " " * (MIB - 30) + "!",
    "blanks_behind_a_line_of_a_program": '{"a":1,}\nf()' + "\t" * (MIB - 20) + "x",
    "blanks_behind_a_quote_in_a_comment": '{"a":1, // "' + " " * (MIB - 30) + "x\n}",
    "digits_before_a_letter": '{"a": ' + "1" * (MIB - 10) + "x}",
    "dots_before_a_letter": '{"a": ' + "." * (MIB - 10) + "x}",
    "openings_of_a_member": '{"a":' * (MIB // 5),
    "members": "{" + '"a":' * (MIB // 4 - 1),
    "comment_openings": "{" + "/*" * (MIB // 2 - 1),
    "strings_and_comment_openings": "{" + '"5" /*",' * (MIB // 8 - 1) + "*/ z",
    "strings_and_line_comments": "{" + '"5" //",' * (MIB // 8 - 1),
    "html_comments": "{" + "<!--" * (MIB // 4 - 1),
    "think_tags": "<think>" * (MIB // 7),
    "closing_think_tags": "</think>" * (MIB // 8),
    "think_blocks": "<think></think>" * (MIB // 15),
    "quoted_lines": "> {\n" * (MIB // 4),
    "asides": "{a} " * (MIB // 4),
    "aside_openings": "{a " * (MIB // 3),
    "copies": '{"a":1} ' * (MIB // 8),
    "escaped_copies": '{\\"a\\":1} ' * (MIB // 10),
    "words": "{a b " * (MIB // 5),
    "empty_brackets": "a {} b\n" * (MIB // 7 - 8),
    "empty_brackets_on_one_line": "a {} b " * (MIB // 7 - 8),
    "quoted_empty_brackets": "`[]` b\n" * (MIB // 7 - 8),
    "lists_far_behind": '{"a":1}' + " " * (MIB // 2) + "[1]x " * (MIB // 11),
    "lists_in_prose": "x [1] x" * (MIB // 7 - 8),
    "doubled_quotes": '{""a"":' * (MIB // 7 - 8),
    "written_line_breaks": "{" + "\\n" * (MIB // 2 - 8),
    "key_words": "a: " * (MIB // 3),
    "commas": "[" + "," * (MIB - 1),
    "plus_signs": '{"a": "x"' + ' + "y"' * (MIB // 6 - 4) + "}",
    "adjacent_strings": '{"a": ' + '"x" ' * (MIB // 4 - 4) + "}",
    "inner_quotes": '{"a": "' + 'x "y" ' * (MIB // 6 - 4) + '"}',
    "apostrophes": "{'a': '" + "it's " * (MIB // 5 - 4) + "'}",
    "spaces": '{"a":' + " " * (MIB - 8) + "1,}",
    "spaces_behind_strings": "{" + ('"a"' + " " * 5000) * (MIB // 5003 - 1),
    "no_break_spaces": "{" + "\u00a0" * (MIB // 2 - 1),
    "line_breaks": "\n" * (MIB - 1) + "{",
    "surplus_closers": '{"a":1}' + " }" * (MIB // 2 - 8),
    "identical_keys": "{" + '"a":1,' * (MIB // 6 - 4) + "}",
    "tags": "<a " * (MIB // 3),
    "parentheses": '{"a": ' + "(" * (MIB - 8),
    "dots": "[" + "." * (MIB - 1),
    "colons": "{" + ":" * (MIB - 1),
    "unicode_escapes": '{"a": "' + "\\u0041" * (MIB // 6 - 4) + '",}',
    "words_in_single_quotes": "[" + "'x'," * (MIB // 4 - 4) + "]",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("text", KILLERS.values(), ids=KILLERS.keys())
def test_known_killers_end_soon_and_without_an_error(text: str) -> None:
    started = time.process_time()
    outcome = recover(text)
    # Far above what a linear reader needs and far below what a quadratic one takes.
    assert time.process_time() - started < 20
    assert isinstance(outcome, Recovered | RefusedAnswer)
    assert len(outcome.excerpt if isinstance(outcome, RefusedAnswer) else "") < 400


def test_a_text_of_more_than_a_mebibyte_is_refused() -> None:
    text = json.dumps(["x" * MIB])
    outcome = recover(text)
    assert isinstance(outcome, RefusedAnswer)
    assert (outcome.error_type, outcome.line, outcome.column) == ("not_json", 1, 1)


def test_a_mebibyte_is_counted_in_bytes() -> None:
    assert isinstance(recover(json.dumps(["é" * (MIB // 2)], ensure_ascii=False)), RefusedAnswer)
    assert isinstance(recover(json.dumps(["é" * (MIB // 2 - 8)], ensure_ascii=False)), Recovered)


@pytest.mark.parametrize("depth", [1, 63, 64])
def test_sixty_four_levels_are_read(depth: int) -> None:
    text = '{"a":' * (depth - 1) + "[]" + "}" * (depth - 1)
    assert isinstance(recover(text), Recovered)
    assert isinstance(recover(text + ","), Recovered)


@pytest.mark.parametrize("filler", ["", '"[]{}",', '"]}", "[",'])
@pytest.mark.parametrize("depth", [65, 100, 199, 201])
def test_more_levels_are_refused_at_the_bracket_that_is_one_too_many(
    depth: int, filler: str
) -> None:
    text = ("[" + filler) * depth + "1" + "]" * depth
    outcome = recover(text)
    assert isinstance(outcome, RefusedAnswer)
    assert outcome.column == 64 * (1 + len(filler)) + 1


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1E+400", "1" * 400 + "e0", "1" * 5000])
def test_numbers_past_what_can_be_kept_are_refused_where_they_begin(number: str) -> None:
    outcome = recover(f'{{"a": {number}}}')
    assert isinstance(outcome, RefusedAnswer)
    assert outcome.column == 7


@pytest.mark.parametrize("text", ['{"a": "1e999"}', '{"a": 1e300}', '{"page": "e 999", "b": 1}'])
def test_text_that_only_looks_like_a_huge_number_is_read(text: str) -> None:
    assert isinstance(recover(text), Recovered)


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_no_text_is_an_error(text: str) -> None:
    assert isinstance(recover(text), Recovered | RefusedAnswer)


@pytest.mark.slow
@given(st.lists(PIECES, max_size=40).map("".join), st.sampled_from([None, "length", "stop"]))
@settings(max_examples=1500, deadline=None)
def test_no_mixture_of_json_and_noise_is_an_error(text: str, finish_reason: str | None) -> None:
    outcome = recover(text, finish_reason)
    if isinstance(outcome, RefusedAnswer):
        lines = text.split("\n")
        assert 1 <= outcome.line <= len(lines)
        assert 1 <= outcome.column <= len(lines[outcome.line - 1]) + 1
    else:
        json.dumps(outcome.value, allow_nan=False)


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=4))
@settings(max_examples=300, deadline=None)
def test_valid_objects_are_read_as_they_are(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    outcome = recover(text)
    assert isinstance(outcome, Recovered)
    assert same(outcome.value, json.loads(text))
    # A backspace or a form feed before a letter is read as written, and marked.
    assert {repair.kind for repair in outcome.repairs} <= {"doubtful_escape"}


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=4))
@settings(max_examples=300, deadline=None)
def test_the_slow_path_reads_what_the_fast_one_does(value: dict[str, Any]) -> None:
    # Such a key may be two whose quotes are mixed up.
    assume(not any(set(key) & QUOTES and set(key) & {":", "="} for key in value))
    text = json.dumps(value)
    # In damaged text they are refused.
    assume(not has_doubtful_escapes(text))
    outcome = recover(text + ",")
    assert isinstance(outcome, Recovered), outcome
    assert same(outcome.value, json.loads(text))
